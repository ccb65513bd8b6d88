"""
The landscape of C and γ
========================

Every point of this map is a five-fold cross-validation. Good points lie along a diagonal: a machine that
reaches further (small γ) may charge more for errors (large C) and does nearly the same.

A broad bright area is good news, and its middle a better choice than its highest peak. The 110 points are 550
fits, which share what they have in common: kernel values are computed once for each γ, and each C starts from
the solution of the last.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from hinge import SVC
from hinge.selection import GridSearch

X, y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)
Cs, gammas = 2.0 ** np.arange(-5, 16, 2), 2.0 ** np.arange(-15, 4, 2)
search = GridSearch(SVC(), {"C": Cs, "gamma": gammas}, cv=5, refit=False).fit(X, y)
scores = search.cv_results_["mean_test_score"].reshape(len(Cs), len(gammas))

figure, ax = plt.subplots(figsize=(6.5, 5), layout="constrained")
shown = ax.contourf(
    np.log2(gammas), np.log2(Cs), scores, levels=np.linspace(0.85, scores.max(), 9), extend="min", cmap="cividis"
)
best = np.unravel_index(scores.argmax(), scores.shape)
ax.plot(
    np.log2(gammas[best[1]]), np.log2(Cs[best[0]]), "*", markersize=16, color="#d55e00", markeredgecolor="white"
)
ax.set(xlabel="log₂ γ", ylabel="log₂ C", title=f"best: {scores.max():.1%}")
figure.colorbar(shown, label="accuracy, five folds")
plt.show()
