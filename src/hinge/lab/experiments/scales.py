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
    spambase, connect4, mnist : int
        Rows of the sets of Glasmachers & Igel in their tables 2 and 3.
    variants : int
        Rows of connect-4 in tables 4 to 7, which run it many times.
    whole : int
        Rows of Spambase for the search over all cached rows (table 7), whose steps cost the square of it.
    trials : int
        Runs on Spambase from different starts; tables show their median.
    gain_limit, mnist_limit, slow_limit : float
        Most seconds of processor time of a cell of their tables; the last for methods that are slow on large sets.
    mnist_cache : float
        Megabytes for kernel rows of MNIST.
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
    limit: float
    own_limit: float
    orders: int
    adult: tuple[str, ...]
    web: tuple[str, ...]
    separable: tuple[int, ...]
    noise: tuple[int, ...]
    spambase: int
    connect4: int
    mnist: int
    variants: int
    whole: int
    trials: int
    gain_limit: float
    mnist_limit: float
    slow_limit: float
    mnist_cache: float
    map_rows: int
    map_steps: int
    map_limit: float
    claims: tuple[int, ...]
    claims_limit: float


FULL = Scale(
    "full",
    limit=10.0,
    own_limit=60.0,
    orders=5,
    adult=tuple(f"a{k}a" for k in range(1, 10)),
    web=("w1a", "w3a", "w5a", "w7a", "w8a"),
    separable=(1000, 2000, 5000, 10000, 20000),
    noise=(500, 1000, 2000, 5000, 10000),
    spambase=4601,
    connect4=30555,
    mnist=60000,
    variants=10185,
    whole=4601,
    trials=3,
    gain_limit=240.0,
    mnist_limit=1500.0,
    slow_limit=40.0,
    mnist_cache=8000.0,
    map_rows=1500,
    map_steps=5,
    map_limit=6.0,
    claims=(500, 1000, 2000, 4000, 8000),
    claims_limit=60.0,
)

QUICK = Scale(
    "quick",
    limit=1.5,
    own_limit=1.5,
    orders=1,
    adult=("a1a", "a2a", "a3a", "a4a"),
    web=("w1a", "w3a", "w5a"),
    separable=(1000, 2000, 5000),
    noise=(500, 1000, 2000),
    spambase=4601,
    connect4=1500,
    mnist=1500,
    variants=1500,
    whole=500,
    trials=1,
    gain_limit=4.0,
    mnist_limit=4.0,
    slow_limit=4.0,
    mnist_cache=40.0,
    map_rows=600,
    map_steps=3,
    map_limit=1.0,
    claims=(250, 500, 1000, 2000),
    claims_limit=5.0,
)

TINY = Scale(
    "tiny",
    limit=0.3,
    own_limit=0.3,
    orders=2,
    adult=("a1a:200", "a1a:400", "a1a"),
    web=("w1a:200", "w1a:400", "w1a:800"),
    separable=(100, 200, 400),
    noise=(60, 120, 240),
    spambase=300,
    connect4=300,
    mnist=200,
    variants=200,
    whole=100,
    trials=1,
    gain_limit=1.0,
    mnist_limit=1.0,
    slow_limit=1.0,
    mnist_cache=40.0,
    map_rows=100,
    map_steps=2,
    map_limit=0.5,
    claims=(50, 100, 200),
    claims_limit=0.3,
)
