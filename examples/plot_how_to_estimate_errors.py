"""
Leave-one-out, five folds, and the ξα bound
===========================================

How many errors will a machine make on new data? Three answers from the training data alone: leaving out each
sample in turn is nearly unbiased and needs n fits, of which Hinge makes only those that can change something;
five folds need five, and are a little pessimistic since each trains on less; the ξα bound of Joachims needs
none, and never promises too much.

The three agree where the machine is good. Where C is too large for the noise the bound gives up first.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from hinge import SVC
from hinge.selection import cross_validate, leave_one_out, xi_alpha

X, y = make_moons(150, noise=0.25, random_state=0)
X_new, y_new = make_moons(5000, noise=0.25, random_state=1)
Cs = 2.0 ** np.arange(-4, 9)
errors = {"leave one out": [], "five folds": [], "ξα bound": [], "5,000 new samples": []}
for C in Cs:
    machine = SVC(C=C, gamma=1.0).fit(X, y)
    errors["leave one out"].append(leave_one_out(machine, X, y).error)
    errors["five folds"].append(1 - cross_validate(machine, X, y, cv=5)["test_score"].mean())
    errors["ξα bound"].append(xi_alpha(machine, X, y).error)
    errors["5,000 new samples"].append(1 - machine.score(X_new, y_new))

figure, ax = plt.subplots(figsize=(7, 4.4), layout="constrained")
for (name, values), style in zip(errors.items(), ("o-", "s-", "^-", "k--"), strict=True):
    ax.plot(Cs, values, style, label=name)
ax.set(xscale="log", xlabel="C", ylabel="share of errors", ylim=(0, None))
ax.legend(frameon=False)
plt.show()
