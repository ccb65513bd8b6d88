"""Whatever bytes a model file holds: a model or our own error, in bounded time and memory."""

import io
import os
import re
import time
import tracemalloc
from contextlib import suppress

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from test_model_files import GOOD, PRECOMPUTED

from hinge.estimators import load_model
from hinge.io import ModelFileError, read_libsvm_model, write_libsvm_model

# One round fuzzes with always the same files; --hypothesis-profile=search takes others in every round.
ROUNDS = int(os.environ.get("HINGE_FUZZ_ROUNDS", 1))
SECONDS = 20
MOST_BYTES = 2**25

KEYS = (
    b"svm_type kernel_type degree gamma coef0 nr_class total_sv rho label probA probB prob_density_marks nr_sv SV "
    b"c_svc nu_svc one_class epsilon_svr nu_svr linear polynomial rbf sigmoid precomputed"
).split()
NUMBERS = st.one_of(
    st.integers(-3, 9).map(lambda k: b"%d" % k),
    st.floats().map(lambda x: repr(x).encode()),
    st.sampled_from(
        [b"1e999", b"-0", b"nan", b"inf", b"0x1p3", b"2147483647", b"99999999999", b"1_0", b"+.5", b"1."]
    ),
)
TOKENS = st.one_of(
    st.sampled_from(KEYS),
    NUMBERS,
    st.tuples(NUMBERS, NUMBERS).map(b":".join),
    st.binary(max_size=4),
    st.sampled_from([b"\n", b" ", b"#", b"qid:3", b"\r\n", b"0:1", b"0:2147483648", b"2147483646:1"]),
)
SOUP = st.lists(TOKENS, max_size=60).map(b" ".join)

OTHERS = [
    GOOD.replace(b"rbf", b"polynomial\ndegree 3\ncoef0 1"),
    GOOD.replace(b"nr_sv", b"probA 1 1 1\nprobB 0 0 0\nnr_sv"),
    PRECOMPUTED,
    PRECOMPUTED.replace(b"SV", b"prob_density_marks 1 2 3 4 5 6 7 8 9 10\nSV", 1).replace(
        b"total_sv", b"total_sv"
    ),
    b"svm_type nu_svr\nkernel_type linear\nnr_class 2\ntotal_sv 1\nrho 0\nprobA 0.5\nSV\n1 1:2 \n",
    b"svm_type c_svc\nkernel_type linear\nnr_class 1\ntotal_sv 0\nrho\nlabel 1\nnr_sv 0\nSV\n",
]


@st.composite
def damaged(draw):
    """A good file with a few tokens or bytes replaced, removed or doubled."""
    text = draw(st.sampled_from([GOOD, *OTHERS]))
    words = text.replace(b"\n", b" \n ").split(b" ")
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(words) - 1))
        match draw(st.integers(0, 3)):
            case 0:
                words[at] = draw(TOKENS)
            case 1:
                words.insert(at, draw(TOKENS))
            case 2:
                words[at] = b""
            case 3:
                words[at : at + 1] = [words[at], words[at]]
    text = b" ".join(words).replace(b" \n ", b"\n")
    cut = draw(st.integers(0, len(text)))
    return text[:cut] if draw(st.integers(0, 9)) == 0 else text


def use(text):
    """Read; a model that is accepted must decide, be written and come back the same."""
    try:
        model = read_libsvm_model(io.BytesIO(text))
    except ModelFileError:
        return
    queries = sp.csr_matrix(np.arange(1.0, 25.0).reshape(2, 12) / 10)
    if model.kernel.label != "precomputed":
        for _, decisions in model.decide(queries, threads=1):
            assert decisions.shape == (2, len(model.rho))
    write_libsvm_model(model, os.devnull)
    with suppress(ModelFileError):
        load_model(io.BytesIO(text))


@pytest.fixture
def checked():
    """Use a file, and check that it takes little memory."""

    def check(text):
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        with np.errstate(all="ignore"):
            use(text)
        assert tracemalloc.get_traced_memory()[1] - before < MOST_BYTES, text

    for text in (GOOD, *OTHERS):
        use(text)  # compile before memory is watched
    tracemalloc.start()
    yield check
    tracemalloc.stop()


@pytest.mark.parametrize("index", ["2147483646", "2147483647"])
def test_large_index(index, checked):
    for text in (GOOD, *OTHERS):
        for place in re.finditer(rb"\d+(?=:)", text):
            checked(text[: place.start()] + index.encode() + text[place.end() :])


class _EnoughError(Exception):
    pass


@pytest.mark.slow
@pytest.mark.parametrize("_round", range(ROUNDS))
def test_fuzz(_round, checked):
    started = time.monotonic()
    n = 0

    @settings(max_examples=10**9, suppress_health_check=list(HealthCheck))
    @given(st.one_of(damaged(), SOUP, st.binary(max_size=300)))
    @example(GOOD)
    @example(PRECOMPUTED)
    def fuzz(text):
        nonlocal n
        if time.monotonic() - started > SECONDS:
            raise _EnoughError
        n += 1
        checked(text)

    with suppress(_EnoughError):
        fuzz()
    assert n > 10
