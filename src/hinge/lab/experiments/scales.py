"""How much of an experiment to run: all of it, what fits into minutes, or what fits into a test."""

from __future__ import annotations

from dataclasses import dataclass


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


FULL = Scale(
    "full",
    budget=2250.0,
    limit=30.0,
    own_limit=60.0,
    orders=5,
    adult=tuple(f"a{k}a" for k in range(1, 10)),
    web=tuple(f"w{k}a" for k in range(1, 9)),
    separable=(1000, 2000, 5000, 10000, 20000),
    noise=(500, 1000, 2000, 5000, 10000),
    spambase=4601,
    connect4=30555,
    large_trials=6,
    variants=7639,
    variant_trials=8,
    mnist=2000,
    mnist_trials=6,
    trials=10,
    whole=2300,
    whole_trials=6,
    light_trials=6,
    gain_limit=240.0,
    mnist_limit=60.0,
    has_all_of_mnist=True,
    map_rows=4000,
    map_steps=5,
    map_limit=8.0,
    claims=(500, 1000, 2000, 4000, 8000),
    claims_limit=60.0,
)

QUICK = Scale(
    "quick",
    budget=270.0,
    limit=1.5,
    own_limit=1.5,
    orders=1,
    adult=("a1a", "a2a", "a3a", "a4a"),
    web=("w1a", "w3a", "w5a"),
    separable=(1000, 2000, 5000),
    noise=(500, 1000, 2000),
    spambase=1500,
    connect4=2000,
    large_trials=1,
    variants=1000,
    variant_trials=6,
    mnist=1000,
    mnist_trials=1,
    trials=6,
    whole=300,
    whole_trials=1,
    light_trials=1,
    gain_limit=3.0,
    mnist_limit=3.0,
    has_all_of_mnist=False,
    map_rows=600,
    map_steps=3,
    map_limit=1.0,
    claims=(250, 500, 1000, 2000),
    claims_limit=5.0,
)

TINY = Scale(
    "tiny",
    budget=600.0,
    limit=0.3,
    own_limit=0.3,
    orders=2,
    adult=("a1a:200", "a1a:400", "a1a"),
    web=("w1a:200", "w1a:400", "w1a:800"),
    separable=(100, 200, 400),
    noise=(60, 120, 240),
    spambase=300,
    connect4=400,
    large_trials=1,
    variants=300,
    variant_trials=2,
    mnist=200,
    mnist_trials=1,
    trials=2,
    whole=100,
    whole_trials=1,
    light_trials=1,
    gain_limit=1.0,
    mnist_limit=1.0,
    has_all_of_mnist=False,
    map_rows=100,
    map_steps=2,
    map_limit=0.5,
    claims=(50, 100, 200),
    claims_limit=0.3,
)
