"""The option tables of the commands. Light to import: help and completion need no more."""

from __future__ import annotations

from hinge.cli.options import QUIET, Command, Option

_THREADS = Option(
    "threads", "Number of threads; every core by default.", kind="int", metavar="N", least=1, most=1024
)

_LABEL = Option(
    "label",
    "Label column of a table (.csv, .tsv, .npy, .parquet): its name, or its number counted from 1; by default the "
    "column called label, target or y, else the first.",
    kind="file",
    metavar="NAME|NUMBER",
)

_SCHEDULER = Option(
    "scheduler",
    "Work on the Dask cluster with this scheduler, such as tcp://127.0.0.1:8786. Its workers read the data files, "
    "several if need be: LIBSVM text that all of them find under the same names.",
    kind="file",
    metavar="ADDRESS",
)

_JSON = Option("json", "Print the result to standard output as JSON, and nothing else.")

_EXITS = """
exit codes: 0 success; 1 an error with a file, a parameter or a short option, where LIBSVM's tools end with 1;
2 a wrong long option or a wrong value. Errors and warnings go to standard error.
"""

TRAIN = Command(
    "train",
    "Train a support vector machine on a data file and write it as a LIBSVM model file, or cross-validate.",
    (
        Option("type", "Type of machine.", "s", "int", 0, "TYPE", values=(
            "0  C-SVC       classification, two classes or many",
            "1  nu-SVC      classification, with a bound on the share of errors",
            "2  one-class   novelty detection",
            "3  epsilon-SVR regression",
            "4  nu-SVR      regression, with a bound on the share of errors",
            "5  SVDD        novelty detection by the smallest sphere; LIBSVM's programs cannot read its model",
            "6  ranking     within queries (qid: behind the label); LIBSVM's programs cannot read its model",
        )),
        Option("kernel", "Kernel function of two samples u and v.", "t", "int", 2, "KERNEL", values=(
            "0  linear       u'v",
            "1  polynomial   (gamma u'v + coef0)^degree",
            "2  RBF          exp(-gamma |u-v|^2)",
            "3  sigmoid      tanh(gamma u'v + coef0)",
            "4  precomputed  the file holds kernel values: LABEL 0:serial 1:K(x,x1) 2:K(x,x2) ...",
        )),
        Option("degree", "Degree of the polynomial kernel.", "d", "int", 3, "D"),
        Option("gamma", "Gamma of the kernel; 1 / (largest index) by default.", "g", "float", metavar="G"),
        Option("coef0", "Coef0 of the kernel.", "r", "float", 0.0, "R"),
        Option("cost", "Price C of an error: C-SVC, epsilon-SVR, nu-SVR, ranking.", "c", "float", 1.0, "C"),
        Option("nu", "Bound nu on the share of errors: nu-SVC, one-class, nu-SVR, SVDD.", "n", "float", 0.5, "NU"),
        Option("epsilon", "Half the width of the tube without loss: epsilon-SVR.", "p", "float", 0.1, "P"),
        Option("cache", "Megabytes for kernel values; a quarter of the free memory by default.", "m", "float",
               metavar="MB"),
        Option("tolerance", "Largest violation of the optimality conditions to stop at.", "e", "float", 0.001,
               "EPS"),
        Option("shrinking", "Whether to set settled samples aside, 0 or 1.", "h", "int", 1, "0|1"),
        Option("probability", "Whether to fit what probabilities need, 0 or 1.", "b", "int", 0, "0|1"),
        Option("weight", "Multiply C by X for this class; may be given for several.", "w", "weight", metavar="X"),
        Option("folds", "Cross-validate with this many folds (LIBSVM's own) and write no model.", "v", "int",
               metavar="N"),
        QUIET,
        Option("loss", "What an error costs, C-SVC and epsilon-SVR: its size, or the square of that.",
               kind="choice", default="plain", choices=("plain", "squared")),
        Option("solver", "Method.", kind="choice", default="auto", choices=("auto", "block", "smo")),
        Option("rule", "Which pair --solver smo moves next.", kind="choice", default="second_order",
               choices=("mvp", "second_order", "mg", "hmg")),
        Option("gap-tol", "Also stop once the duality gap is at most this share of the objective.", kind="float",
               metavar="SHARE", is_positive=True),
        _THREADS,
        Option("time-limit", "Stop after this many seconds and write the best model so far, with a warning.",
               kind="float", metavar="SECONDS", is_positive=True),
        Option("memory", "Keep the whole command to this much resident memory, however large the file: its "
               "samples stay in a temporary file. For one model of LIBSVM text.", kind="size", metavar="SIZE"),
        Option("tmp", "Folder for that temporary file, instead of the model's.", kind="file", metavar="FOLDER"),
        _SCHEDULER,
        Option("force", "Replace the model file even if the time was up before the first step."),
        Option("full-precision", "Write all 17 digits of support vectors, where LIBSVM writes 8."),
        Option("report", "Also write figures of the run to this file, as JSON.", kind="file", metavar="FILE"),
        _LABEL,
        _JSON,
    ),
    ("training_set_file", "[model_file]"),
    """
The data file is LIBSVM text, plain or compressed (gz, bz2, xz), - for standard input, or a table
(.npz, .npy, .csv, .tsv, .parquet). The model is written to NAME.model in the current folder by default.
Labels of a table may be words: the model counts them from 1, and NAME.model.classes has a line for each.

examples:
  hinge train heart_scale
  hinge train -s 0 -t 2 -c 4 -g 0.07 -w1 2 -v 5 heart_scale
  hinge train --cost 4 --threads 2 --report run.json heart_scale heart.model
  hinge train --memory 2GB big.svm big.model
  hinge train --scheduler tcp://127.0.0.1:8786 part-*.svm big.model
"""
    + _EXITS,
    several_with="scheduler",
)  # fmt: skip

PREDICT = Command(
    "predict",
    "Predict the samples of a data file by a LIBSVM model file.",
    (
        Option("probability", "Whether to write probabilities, 0 or 1; for models trained with -b 1.",
               "b", "int", 0, "0|1", least=0, most=1),
        QUIET,
        Option("decision-values", "Also write the decision values of all pairs to this file, one line for each "
               "sample.", kind="file", metavar="FILE"),
        _THREADS,
        _SCHEDULER,
        _LABEL,
        _JSON,
    ),
    ("test_file", "model_file", "output_file"),
    """
One line for each sample: its label or value. With -b 1, classification: a line of labels, then on each line
the label and the probability of every class; one-class: label, normal, outlier.

examples:
  hinge predict heart_scale heart_scale.model predicted
  hinge predict --scheduler tcp://127.0.0.1:8786 part-*.svm big.model predicted
"""
    + _EXITS,
    several_with="scheduler",
)  # fmt: skip

SCALE = Command(
    "scale",
    "Scale every feature of a data file to a range; write the result to standard output.",
    (
        Option("lower", "Lower end of the range.", "l", "float", -1.0, "LOWER"),
        Option("upper", "Upper end of the range.", "u", "float", 1.0, "UPPER"),
        Option("target", "Also scale the targets, to this range.", "y", "range", metavar="LOWER UPPER"),
        Option("save", "Save the scaling to this file.", "s", "file", metavar="FILE"),
        Option("restore", "Use the scaling of this file, so that test data is treated as training data was.", "r",
               "file", metavar="FILE"),
        _THREADS,
        _LABEL,
    ),
    ("data_file",),
    """
examples:
  hinge scale -l 0 -s range train > train.scale
  hinge scale -r range test > test.scale
"""
    + _EXITS,
    unknown="unknown option",
)  # fmt: skip

CHECK = Command(
    "check",
    "Check that a data file follows LIBSVM's format; name every line that does not.",
    (Option("max-errors", "How many lines to describe.", kind="int", default=100, metavar="N", least=1),
     _THREADS, _JSON),
    ("data_file",),
    "Prints \"No error.\" and ends with 0, or \"Found N lines with error.\" and ends with 1.\n" + _EXITS,
)  # fmt: skip

SUBSET = Command(
    "subset",
    "Draw a random part of a data file; lines keep their order.",
    (
        Option("method", "How to draw.", "s", "int", 0, "METHOD", values=(
            "0  stratified: as many of each class as its share, and at least one",
            "1  at random, whatever the labels",
        )),
        Option("seed", "Number that makes the draw repeatable.", kind="int", metavar="N"),
    ),
    ("data_file", "n_lines", "[subset_file]", "[rest_file]"),
    """
Without subset_file the part goes to standard output.

example:
  hinge subset --seed 1 a9a 1000 a9a.small a9a.rest
"""
    + _EXITS,
)  # fmt: skip

_OF_TRAIN = ("type", "kernel", "degree", "coef0", "nu", "epsilon", "cache", "tolerance", "shrinking",
             "probability", "weight", "quiet", "loss", "solver", "rule", "gap-tol", "threads")  # fmt: skip

GRID = Command(
    "grid",
    "Search C and gamma on a grid by cross-validation; print the rate of every point, and the best one last.",
    (
        Option("log2c", "Values of C, as powers of two; null for C = 1.", kind="file", default="-5,15,2",
               metavar="BEGIN,END,STEP|null"),
        Option("log2g", "Values of gamma, as powers of two; null for gamma = 1 / (largest index).", kind="file",
               default="3,-15,-2", metavar="BEGIN,END,STEP|null"),
        Option("folds", "Number of folds; they are LIBSVM's own.", "v", "int", 5, "N"),
        Option("out", "File for the rate of every point, DATASET.out by default; null for none.", kind="file",
               metavar="FILE|null"),
        Option("resume", "Go on with the rates of this file, DATASET.out by default. After a kill at most the "
               "point under way is lost.", kind="file", metavar="FILE"),
        Option("plot", "File for a contour plot, DATASET.png by default (.png, .svg or .pdf); also -png.",
               kind="file", metavar="FILE"),
        Option("gnuplot", "null for no plot; anything else is ignored, because matplotlib draws it.", kind="file",
               metavar="PATH|null"),
        Option("svmtrain", "Run this program for every point, as grid.py does, instead of sharing work between "
               "points.", kind="file", metavar="PATH"),
        Option("strategy", "grid: every point. refine: a coarse grid first, then ever finer ones around the best "
               "point; a few dozen points instead of all.", kind="choice", default="grid",
               choices=("grid", "refine")),
        Option("cluster", "Search on a Dask cluster, such as tcp://127.0.0.1:8786, or on one of joblib's "
               "backends: loky, ray.", kind="file", metavar="ADDRESS"),
        *(option for option in TRAIN.options if option.long in _OF_TRAIN),
        Option("report", "Also write all figures of the search to this file, as JSON.", kind="file",
               metavar="FILE"),
        _LABEL,
        _JSON,
    ),
    ("dataset",),
    """
-log2c, -log2g, -out, -png, -resume, -gnuplot and -svmtrain may be written with one dash, as for grid.py; all
other options are those of hinge train. For regression the rate is the mean squared error, and the
smallest one is the best.

The points are visited gamma by gamma, from coarse to fine: all C of one gamma share their kernel values.

examples:
  hinge grid heart_scale
  hinge grid -log2c -1,7,1 -log2g -9,-3,1 --plot fine.svg heart_scale
  hinge grid -resume heart_scale
  hinge grid -t 0 -log2g null --cluster tcp://127.0.0.1:8786 a9a
"""
    + _EXITS,
)  # fmt: skip

EASY = Command(
    "easy",
    "Scale, search C and gamma, train and predict: all that a first try needs, in one command.",
    (
        _THREADS,
        Option("cluster", "Search on a Dask cluster, such as tcp://127.0.0.1:8786.", kind="file",
               metavar="ADDRESS"),
    ),
    ("training_file", "[testing_file]"),
    """
Writes into the current folder: NAME.scale and NAME.range (scaled data and how it was scaled),
NAME.scale.out and NAME.scale.png (rates of all points), NAME.model, and TEST.scale and TEST.predict for a
testing file.
A killed run goes on with the rates it has when it is started again with the same data.

example:
  hinge easy svmguide1 svmguide1.t
"""
    + _EXITS,
)  # fmt: skip

LAB = Command(
    "lab",
    "The laboratory: list the algorithms of the papers, race them on a data set, repeat the papers' experiments.",
    (),
    ("list|race|animate|reproduce", "[...]"),
    """
  hinge lab list               the algorithms, with their papers
  hinge lab race DATA          train with several of them and compare
  hinge lab animate DATA       make a film of one of them, step by step
  hinge lab reproduce PAPER    repeat the experiments of a paper

hinge lab race --help, and so on, has the options of each.
"""
    + _EXITS,
)  # fmt: skip

LAB_LIST = Command("lab list", "List the algorithms of the laboratory, with their papers.", (), ())

LAB_RACE = Command(
    "lab race",
    "Train with several algorithms on one data set of two classes, and compare time, steps and objectives.",
    (
        Option("solvers", "Algorithms, by their names in hinge lab list, with commas between them.", kind="file",
               default="auto,smo-mvp,smo-second-order,smo-hmg", metavar="NAME,NAME"),
        Option("kernel", "Kernel function of features, by the name that estimators know it by.", kind="file",
               default="rbf", metavar="NAME"),
        Option("c", "Price of an error.", kind="float", default=1.0, metavar="C", is_positive=True),
        Option("gamma", "Gamma of the kernel; 1 / (number of features) by default.", kind="float",
               metavar="G", is_positive=True),
        Option("tolerance", "Largest violation of the optimality conditions to stop at.", kind="float",
               default=0.001, metavar="EPS", is_positive=True),
        Option("cache", "Megabytes for kernel values; a quarter of the free memory by default.",
               kind="float", metavar="MB", is_positive=True),
        Option("no-shrinking", "Never set settled samples aside."),
        Option("time-limit", "Stop each algorithm after this many seconds.", kind="float",
               metavar="SECONDS", is_positive=True),
        _THREADS,
        Option("out", "Draw the convergence into this PNG file.", kind="file", metavar="FILE"),
    ),
    ("DATA",),
    """
DATA is a file, or the name of a data set in the folder $HINGE_DATA or on LIBSVM's page; it has two classes.

example:
  hinge lab race a1a --solvers smo-mvp,smo-second-order,smo-hmg --c 1 --gamma 0.05 --out race.png
"""
    + _EXITS,
)  # fmt: skip

LAB_ANIMATE = Command(
    "lab animate",
    "Film an algorithm at work on data of two features: who moves, where alpha stands, what is violated.",
    (
        Option("solver", "Algorithm, by its name in hinge lab list.", kind="file", default="smo-second-order",
               metavar="NAME"),
        Option("kernel", "Kernel function of features, by the name that estimators know it by.", kind="file",
               default="rbf", metavar="NAME"),
        Option("c", "Price of an error.", kind="float", default=1.0, metavar="C", is_positive=True),
        Option("gamma", "Gamma of the kernel; 1 / (number of features) by default.", kind="float",
               metavar="G", is_positive=True),
        Option("tolerance", "Largest violation of the optimality conditions to stop at.", kind="float",
               default=0.001, metavar="EPS", is_positive=True),
        Option("frames", "Most frames: all of the first steps, ever fewer of the later ones.", kind="int",
               default=40, metavar="N", least=2, most=1000),
        Option("out", "The film: a GIF file, or MP4 where ffmpeg is installed.", kind="file", default="run.gif",
               metavar="FILE"),
        Option("stills", "Write each frame as a PNG file into this folder too.", kind="file", metavar="FOLDER"),
    ),
    ("DATA",),
    """
DATA is a file, or the name of a data set; it has two classes, two features and at most 2,000 samples.

example:
  hinge lab animate fourclass --solver smo-hmg --c 10 --out run.gif
"""
    + _EXITS,
)  # fmt: skip

LAB_REPRODUCE = Command(
    "lab reproduce",
    "Repeat the experiments of a paper and write a report with tables and figures.",
    (
        Option("quick", "Smaller sets and limits, for less than five minutes."),
        Option("out", "Folder of the report; lab-PAPER-SCALE in the current one by default.", kind="file",
               metavar="FOLDER"),
        Option("budget", "Minutes of processor time for this call, compiling included; 0 runs nothing and writes "
               "the report from the runs that are there. By default 37.5 minutes, 4.5 with --quick.",
               kind="float", metavar="MINUTES"),
        Option("again", "Run this one again; its name stands in cells.jsonl.", kind="file", metavar="NAME"),
    ),
    ("platt|glasmachers|bottou|all",),
    """
An interrupted run goes on where it was when it is called again with the same folder, and so does one whose
budget was used up.

example:
  hinge lab reproduce all --quick --out report
"""
    + _EXITS,
)  # fmt: skip

CLUSTER = Command(
    "cluster",
    "Start a Dask cluster of worker processes on this computer, print its address, and end it with Ctrl-C.",
    (
        Option("workers", "Number of processes, of one thread each; one for every core by default.", kind="int",
               metavar="N", least=1, most=1024),
        Option("port", "Port of the scheduler on 127.0.0.1; 0 takes a free one.", kind="int", default=8786,
               metavar="N", least=0, most=65535),
        Option("dashboard-port", "Port of the dashboard; 0 takes a free one. By default there is no dashboard.",
               kind="int", metavar="N", least=0, most=65535),
        Option("worker-memory", "Most memory of each worker; by default they share what there is.", kind="size",
               metavar="SIZE"),
    ),
    (),
    """
examples:
  hinge cluster --workers 2
  hinge cluster --workers 4 --port 0 --dashboard-port 8787
"""
    + _EXITS,
)  # fmt: skip

TOY = Command(
    "toy",
    "Draw points in the browser and watch machines being trained.",
    (
        Option(
            "port",
            "Port on 127.0.0.1; 0 takes a free one.",
            kind="int",
            default=8765,
            metavar="N",
            least=0,
            most=65535,
        ),
        Option("no-browser", "Print the address, and leave it to you to open it."),
    ),
    ("[LINK]",),
    """
LINK is what "copy link" on the page gave somebody: the page begins with that picture. The page is for this
computer alone and loads nothing from elsewhere. From another one, through a tunnel:
  ssh -L 8765:127.0.0.1:8765 HOST hinge toy --no-browser

examples:
  hinge toy
  hinge toy --port 9000 --no-browser
"""
    + _EXITS,
)

REPORT = Command(
    "report",
    "Write one HTML page about a model: what it is, its certificate, margins, errors, the hardest samples.",
    (
        Option("out", "The page; MODEL.html in the current folder by default.", "o", "file", metavar="FILE"),
        _THREADS,
        _LABEL,
    ),
    ("model_file", "data_file"),
    """
The page is one file with its pictures inside, and loads nothing from elsewhere. Where data_file is what the
model was trained on, the page proves that it is optimal for the C, nu and epsilon that its coefficients tell.
The pictures need matplotlib: pip install 'hinge-svm[plot]'.

example:
  hinge report heart_scale.model heart_scale -o heart.html
"""
    + _EXITS,
    anywhere=True,
)

INFO = Command(
    "info",
    "Print what a model file or a data file holds: classes, support vectors, kernel; sparsity, ranges, scale.",
    (_THREADS, _LABEL),
    ("model_or_data_file",),
    """
examples:
  hinge info heart_scale
  hinge info heart_scale.model
"""
    + _EXITS,
)

COMPLETION = Command(
    "completion",
    "Print a script that completes commands and options in a shell.",
    (),
    ("bash|zsh|fish",),
    """
  bash:  eval "$(hinge completion bash)"            in ~/.bashrc
  zsh:   eval "$(hinge completion zsh)"             in ~/.zshrc
  fish:  hinge completion fish | source             in ~/.config/fish/config.fish
""",
)

MAN = Command(
    "man",
    "Print the manual page of a command, or write those of all, in the format of man.",
    (Option("out", "Write the pages of all commands into this folder.", kind="file", metavar="FOLDER"),),
    ("[command]",),
    """
examples:
  hinge man train | man -l -
  hinge man --out ~/.local/share/man/man1
"""
    + _EXITS,
)

WARM_UP = Command(
    "warm-up",
    "Compile everything ahead of its first use on this computer: for container images, for cluster workers.",
    (Option("processes", "Processes that compile side by side; by default one for each core.", kind="int",
            metavar="N", least=1),),
    (),
    """
Says where the compiled code is kept, and how much of it was there before. NUMBA_CACHE_DIR names another
folder.

example:
  NUMBA_CACHE_DIR=/opt/hinge hinge warm-up
""" + _EXITS,
)  # fmt: skip

TABLES = (
    TRAIN, PREDICT, SCALE, GRID, EASY, CHECK, SUBSET, INFO, REPORT, TOY, LAB, LAB_LIST, LAB_RACE,
    LAB_ANIMATE, LAB_REPRODUCE, MAN, WARM_UP, COMPLETION,
)  # fmt: skip
