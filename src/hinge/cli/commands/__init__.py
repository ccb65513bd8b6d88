"""The commands: one module for each, imported when it is used."""

# What each does, and in brackets the LIBSVM tool that it replaces.
COMMANDS = {
    "train": "train a machine on a data file, or cross-validate (svm-train)",
    "predict": "predict a data file by a model file (svm-predict)",
    "scale": "scale the features of a data file (svm-scale)",
    "grid": "search C and gamma by cross-validation (grid.py)",
    "easy": "scale, search, train and predict (easy.py)",
    "check": "check the format of a data file (checkdata.py)",
    "subset": "draw a random part of a data file (subset.py)",
    "info": "tell what a model file or a data file holds",
    "report": "write one HTML page about a model and data",
    "cluster": "start a Dask cluster on this computer, for trying it out",
    "toy": "draw points in the browser and watch machines being trained",
    "lab": "race the algorithms of the papers, and repeat the papers' experiments",
    "demo": "train, cross-validate and report on a data set that ships with scikit-learn",
    "warm-up": "compile everything ahead of its first use on this computer",
    "man": "print manual pages, in the format of man",
    "completion": "print a script that completes commands and options in bash, zsh or fish",
}
