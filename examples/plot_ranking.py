"""
Ranking where levels differ
===========================

Judges agree about which of two wines of a tasting is better, but some evenings are generous and others are not. A
regression believes the points; a ranking only believes who was better than whom on the same evening.

Left: the grades of six evenings over what matters about the wines. Right: how both order the wines of new
evenings, as a share of pairs in the right order, with more and more evenings to learn from.
"""

import matplotlib.pyplot as plt
import numpy as np

from hinge import SVR, RankSVM
from hinge.estimators import ordered_pairs

rng = np.random.default_rng(3)


def evenings(count, wines=8):
    """Wines, their grades, and the evening of each."""
    qid = np.repeat(np.arange(count), wines)
    X = rng.uniform(-2, 2, (count * wines, 3))
    quality = 3 * np.sin(X[:, 0]) + X[:, 1] ** 2
    generosity = 4 * rng.normal(size=count)
    return X, np.round(quality + generosity[qid] + 0.5 * rng.normal(size=len(qid))), qid, quality


X, y, qid, quality = evenings(200)
samples, _, queries, truth = evenings(100)
counts = np.array([5, 10, 20, 40, 80, 160])
shares = {"ranking": [], "regression": []}
for count in counts:
    mine = qid < count
    ranking = RankSVM(C=1.0).fit(X[mine], y[mine], qid[mine])
    regression = SVR(C=1.0).fit(X[mine], y[mine])
    for name, machine in (("ranking", ranking), ("regression", regression)):
        shares[name].append(ordered_pairs(truth, machine.predict(samples), queries))

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for number, colour in enumerate(plt.cm.viridis(np.linspace(0, 0.9, 6))):
    mine = np.flatnonzero(qid == number)
    mine = mine[np.argsort(quality[mine])]
    left.plot(quality[mine], y[mine], "o-", color=colour, linewidth=1, markersize=4)
left.set(xlabel="quality", ylabel="points", title="six evenings")
right.plot(counts, shares["ranking"], "o-", color="#0072b2", label="RankSVM")
right.plot(counts, shares["regression"], "s--", color="#d55e00", label="SVR")
right.axhline(0.5, color="#999999", linewidth=1)
right.annotate("chance", (counts[0], 0.5), xytext=(0, 4), textcoords="offset points", color="#666666")
right.set(xscale="log", xlabel="evenings", title="pairs of new evenings in the right order")
right.set_xticks(counts, counts)
right.minorticks_off()
right.legend(frameon=False)
plt.show()
