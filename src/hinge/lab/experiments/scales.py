"""How much of an experiment to run: all of it, what fits into minutes, or what fits into a test."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Scale:
    """Sizes and limits of the experiments.

    Attributes
    ----------
    name : str
        What the report calls it.
    budget : float
        Seconds of processor time that a call may take.
    limit : float
        Most seconds of processor time of a cell of Platt's tables.
    own_limit : float
        The same for his own algorithm.
    orders : int
        Orders of Adult's samples in which his algorithm runs.
    adult, web : tuple of str
        Sets of Platt's sections 3.1 and 3.2, growing.
    separable, noise : tuple of int
        Sizes of his artificial sets.
    spambase : int
        Rows of Spambase in the tables of Glasmachers & Igel.
    connect4, large_trials : int
        Rows of connect-4 in their table 2, and trials there.
    variants, variant_trials : int
        Rows of connect-4 in all their tables, 2 included, and trials there.
    mnist, mnist_trials : int
        Rows of MNIST, and trials there.
    trials : int
        Trials on Spambase, from different starts.
    whole, whole_trials : int
        Rows for the search over all cached rows (table 7), whose steps cost the square of it; trials.
    light_trials : int
        Trials of SVM-light (table 3).
    gain_limit, mnist_limit : float
        Most seconds of processor time of a cell of their tables.
    has_all_of_mnist : bool
        Whether all of MNIST is solved once, to look into its objective.
    map_rows : int
        Rows of connect-4 for their figure 6.
    map_steps : int
        Points of its grid in each direction.
    map_limit : float
        Most seconds of processor time of one of its cells.
    claims : tuple of int
        Sizes, growing, of the sets on which Bottou & Lin's claims are tried.
    claims_limit : float
        Most seconds of processor time of one of those cells.
    """

    name: str
    budget: float
    limit: float
    own_limit: float
    orders: int
    adult: tuple[str, ...]
    web: tuple[str, ...]
    separable: tuple[int, ...]
    noise: tuple[int, ...]
    spambase: int
    connect4: int
    large_trials: int
    variants: int
    variant_trials: int
    mnist: int
    mnist_trials: int
    trials: int
    whole: int
    whole_trials: int
    light_trials: int
    gain_limit: float
    mnist_limit: float
    has_all_of_mnist: bool
    map_rows: int
    map_steps: int
    map_limit: float
    claims: tuple[int, ...]
    claims_limit: float


# How much of everything, in three columns: all of it, minutes, a test.
_COLUMNS: dict[str, tuple[Any, Any, Any]] = {
    "name":             ("full", "quick", "tiny"),
    "budget":           (2250.0,   270.0,  600.0),
    "limit":            (  30.0,     1.5,    0.3),
    "own_limit":        (  60.0,     1.5,    0.3),
    "orders":           (     5,       1,      2),
    "adult": (tuple(f"a{k}a" for k in range(1, 10)), ("a1a", "a2a", "a3a", "a4a"), ("a1a:200", "a1a:400", "a1a")),
    "web": (tuple(f"w{k}a" for k in range(1, 9)), ("w1a", "w3a", "w5a"), ("w1a:200", "w1a:400", "w1a:800")),
    "separable": ((1000, 2000, 5000, 10000, 20000), (1000, 2000, 5000), (100, 200, 400)),
    "noise": ((500, 1000, 2000, 5000, 10000), (500, 1000, 2000), (60, 120, 240)),
    "spambase":         (  4601,    1500,    300),
    "connect4":         ( 30555,    2000,    400),
    "large_trials":     (     6,       1,      1),
    "variants":         (  7639,    1000,    300),
    "variant_trials":   (     8,       6,      2),
    "mnist":            (  2000,    1000,    200),
    "mnist_trials":     (     6,       1,      1),
    "trials":           (    10,       6,      2),
    "whole":            (  2300,     300,    100),
    "whole_trials":     (     6,       1,      1),
    "light_trials":     (     6,       1,      1),
    "gain_limit":       ( 240.0,     3.0,    1.0),
    "mnist_limit":      (  60.0,     3.0,    1.0),
    "has_all_of_mnist": (  True,   False,  False),
    "map_rows":         (  4000,     600,    100),
    "map_steps":        (     5,       3,      2),
    "map_limit":        (   8.0,     1.0,    0.5),
    "claims": ((500, 1000, 2000, 4000, 8000), (250, 500, 1000, 2000), (50, 100, 200)),
    "claims_limit":     (  60.0,     5.0,    0.3),
}  # fmt: skip

FULL, QUICK, TINY = (Scale(**{field: values[place] for field, values in _COLUMNS.items()}) for place in range(3))
