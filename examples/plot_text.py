"""
Words that decide
=================

Text becomes thousands of columns, nearly all of them zero. A linear machine on such data has a weight for
every word, and no need for kernel values: Hinge works on the weight vector, sparse from end to end.

These sentences are made from two lists of words plus common ones, so we know which words should matter. The
weights find them.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from hinge import SVC

rng = np.random.default_rng(0)
sea, hills = (
    ["harbour", "tide", "sail", "anchor", "gull", "wave"],
    ["ridge", "summit", "boot", "trail", "ibex", "scree"],
)
common = [
    "the",
    "day",
    "was",
    "long",
    "and",
    "cold",
    "we",
    "went",
    "on",
    "until",
    "evening",
    "came",
    "with",
    "wind",
    "rain",
    "sun",
    "bread",
]
texts = [" ".join([*rng.choice(own, 2), *rng.choice(common, 10)]) for own in [sea, hills] * 300]
labels = ["sea", "hills"] * 300

words = TfidfVectorizer()
machine = SVC(kernel="linear", C=1.0).fit(words.fit_transform(texts), labels)
weights = np.asarray(machine.coef_.todense()).ravel()
order = np.argsort(weights)

figure, ax = plt.subplots(figsize=(6.5, 6.2), layout="constrained")
ax.barh(
    words.get_feature_names_out()[order], weights[order], color=np.where(weights[order] > 0, "#0072b2", "#e69f00")
)
ax.axvline(0, color="k", lw=0.8)
ax.set(xlabel="weight: hills ← → sea")
plt.show()
