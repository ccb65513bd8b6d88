"""
Asking for labels
=================

Labels are expensive. A learner that asks for the sample it knows least about, the one nearest to its boundary,
needs few of them. Every answer is *added* to the fitted machine, which becomes exactly what a fit to all answers
would make. (With thousands of answers that takes a small part of a fit; with sixty, as here, about as long.)

On the left, the samples asked for, coloured by when; on the right the share of right answers, beside that of
machines that take their samples by chance.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from hinge import SVC

X, y = make_moons(2000, noise=0.15, random_state=0)
new, truth = make_moons(2000, noise=0.15, random_state=1)
first = np.concatenate([np.flatnonzero(y == label)[:2] for label in (0, 1)]).tolist()


def learn(choose, n_queries=60):
    known, scores = list(first), []
    machine = SVC(C=10, gamma=2.0).fit(X[known], y[known])
    for _ in range(n_queries):
        asked = choose(machine, known)
        machine.add(X[[asked]], y[[asked]])
        known.append(asked)
        scores.append(machine.score(new, truth))
    return machine, known, scores


def nearest_to_the_boundary(machine, known):
    doubt = np.abs(machine.decision_function(X))
    doubt[known] = np.inf
    return int(np.argmin(doubt))


machine, known, scores = learn(nearest_to_the_boundary)
draws = [np.random.default_rng(seed) for seed in range(10)]
by_chance = [learn(lambda _, known, rng=rng: int(rng.integers(len(X))))[2] for rng in draws]

figure, (plane, course) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
grid = np.linspace(-1.6, 2.6, 150), np.linspace(-1.1, 1.6, 120)
values = machine.decision_function(np.stack(np.meshgrid(*grid), axis=-1).reshape(-1, 2)).reshape(120, 150)
plane.contourf(*grid, values, levels=[-99, 0, 99], colors=["#dbe9f4", "#fbe3d6"])
plane.contour(*grid, values, levels=[0], colors="black")
plane.scatter(*X.T, s=3, color="#bbbbbb")
dots = plane.scatter(*X[known].T, s=26, c=np.arange(len(known)), cmap="viridis", edgecolor="black", linewidth=0.5)
figure.colorbar(dots, ax=plane, label="asked as number")
plane.set(title="the samples asked for", xticks=[], yticks=[])

course.plot(np.mean(by_chance, axis=0), color="#999999", label="by chance, mean of ten")
course.fill_between(range(60), np.min(by_chance, axis=0), np.max(by_chance, axis=0), color="#eeeeee")
course.plot(scores, color="#d55e00", label="nearest to the boundary")
course.set(xlabel="labels asked for", ylabel="right answers on new samples", title="what they teach")
course.legend(loc="lower right")
plt.show()
