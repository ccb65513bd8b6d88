"""
Certifying somebody else's model
================================

A certificate asks nobody how an answer was found. From the dual coefficients alone it recomputes the
violation and the duality gap, here for scikit-learn's machine at eight tolerances and for Hinge's at one.

scikit-learn's violation follows its tolerance down to about 1e-5, where kernel values in single precision end
the journey. The answer of Hinge lies many digits below its own tolerance: on data of this size the free
variables are solved for directly at the end.
"""

import matplotlib.pyplot as plt
import numpy as np
import sklearn.svm
from sklearn.datasets import make_moons

from hinge import SVC, Gram, Kernel, certificate
from hinge.dual.formulations import c_svc

X, y = make_moons(400, noise=0.3, random_state=0)
problem, gram = c_svc(2.0 * y - 1, C=10.0), Gram(X, Kernel("rbf", gamma=1.0))


def proof(machine):
    """Certify a machine of two classes by its dual coefficients."""
    beta = np.zeros(len(y))
    beta[machine.support_] = machine.dual_coef_[0]
    return certificate(problem, gram, beta)


tolerances = np.logspace(-6, 0.5, 8)
theirs = [proof(sklearn.svm.SVC(C=10, gamma=1.0, tol=tol).fit(X, y)) for tol in tolerances]
ours = proof(SVC(C=10, gamma=1.0).fit(X, y))

figure, ax = plt.subplots(figsize=(6.5, 4.4), layout="constrained")
ax.loglog(tolerances, [found.violation for found in theirs], "o-", label="scikit-learn, violation")
ax.loglog(tolerances, [found.gap for found in theirs], "s-", label="scikit-learn, duality gap")
ax.loglog(tolerances, tolerances, "k:", label="promised")
ax.loglog([1e-3], [max(ours.violation, 1e-16)], "*", markersize=15, color="#d55e00", label="Hinge at its default")
ax.set(xlabel="tolerance", ylabel="recomputed")
ax.legend(frameon=False)
plt.show()
