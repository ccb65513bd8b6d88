"""
Four ways to look at a machine
==============================

`hinge.plot` draws what people ask of a fitted machine, in scikit-learn's Display style. The boundary shows
where decisions change and which samples hold it in place. Margins show how clearly samples are decided: left
of zero are the errors.

Calibration compares what was foretold with what came true. Convergence shows how the violation of the
optimality conditions fell while the machine was trained; the last, steep step is the direct solve for the
free variables.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons

from hinge import SVC
from hinge.plot import Calibration, Convergence, DecisionBoundary, Margins

X, y = make_moons(300, noise=0.3, random_state=0)
X_new, y_new = make_moons(2000, noise=0.3, random_state=1)
machine = SVC(C=10, gamma=1.0, probability=True, random_state=0, trace=True).fit(X, y)

figure, axes = plt.subplots(2, 2, figsize=(11, 7.5), layout="constrained")
DecisionBoundary.from_estimator(machine, X, y, ax=axes[0, 0])
Margins.from_estimator(machine, X_new, y_new, ax=axes[0, 1])
Calibration.from_estimator(machine, X_new, y_new, ax=axes[1, 0])
Convergence.from_estimator(machine, ax=axes[1, 1])
plt.show()
