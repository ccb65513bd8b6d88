"""
Time series that are shifted
============================

Two signals may be the same but for a delay. Compared point by point they look unrelated; a kernel that slides
one along the other and keeps the best match knows better. Any function of two sets of samples can be a
kernel.

Such near-kernels are not always positive semi-definite. Hinge trains with them, and its report would say so
if the fit had got stuck.
"""

import matplotlib.pyplot as plt
import numpy as np

from hinge import SVC

rng = np.random.default_rng(0)
n, length = 120, 64
t = np.arange(length)
y = np.arange(n) % 2
shapes = [np.exp(-0.5 * ((t - 20) / 3) ** 2), np.where((t >= 14) & (t < 24), 0.75, 0.0)]
X = np.array([np.roll(shapes[label], rng.integers(0, 30)) for label in y]) + rng.normal(0, 0.12, (n, length))


def best_match(A, B):
    """Largest correlation over all shifts, by Fourier transforms."""
    spectra = np.fft.rfft(A)[:, None] * np.fft.rfft(B)[None].conj()
    match = np.fft.irfft(spectra, n=length).max(axis=2)
    return np.exp(-(np.sum(A**2, 1)[:, None] + np.sum(B**2, 1)[None] - 2 * match) / 2)


half = n // 2
scores = {
    "RBF, point by point": SVC(C=10).fit(X[:half], y[:half]).score(X[half:], y[half:]),
    "best match over shifts": SVC(kernel=best_match, C=10).fit(X[:half], y[:half]).score(X[half:], y[half:]),
}
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained", width_ratios=[2, 1])
for label, colour in enumerate(("#0072b2", "#e69f00")):
    left.plot(t, X[y == label][:4].T + 1.3 * np.arange(4), color=colour, lw=1)
left.set(title="four of each class", yticks=[], xlabel="time")
right.barh(list(scores), list(scores.values()), color=["#999999", "#d55e00"])
right.set(xlim=(0.4, 1), xlabel="accuracy on the other half")
plt.show()
