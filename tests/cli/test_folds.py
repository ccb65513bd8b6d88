"""LIBSVM's folds without LIBSVM."""

import ctypes
import ctypes.util
import sys

import numpy as np
import pytest

from hinge.cli.folds import GlibcRandom, plain_folds, stratified_folds


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs the GNU C library")
def test_rand_is_that_of_the_c_library():
    name = ctypes.util.find_library("c")
    libc = ctypes.CDLL(name)
    if not hasattr(libc, "gnu_get_libc_version"):
        pytest.skip("the C library is not GNU's")
    libc.srand(1)
    ours = GlibcRandom()
    assert [ours() for _ in range(2000)] == [libc.rand() for _ in range(2000)]


def test_folds_part_the_samples():
    for n, n_folds in ((10, 3), (5, 5), (101, 10)):
        folds = plain_folds(n, n_folds, GlibcRandom())
        assert sorted(np.concatenate(folds).tolist()) == list(range(n))
        assert max(map(len, folds)) - min(map(len, folds)) <= 1
    classes = [np.arange(0, 7), np.arange(7, 20)]
    folds = stratified_folds(classes, 3, GlibcRandom())
    assert [np.count_nonzero(fold < 7) for fold in folds] == [2, 2, 3]
    assert sorted(np.concatenate(folds).tolist()) == list(range(20))
