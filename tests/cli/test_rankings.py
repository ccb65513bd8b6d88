"""``hinge train -s 6`` and ``hinge predict`` on files with ``qid:``."""

import json

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file

from hinge import RankSVM
from hinge.estimators import mean_ndcg, ordered_pairs


@pytest.fixture
def judged(tmp_path):
    """A file with queries, some of one sample, and what is in it."""
    rng = np.random.default_rng(0)
    X, qid = np.round(rng.normal(size=(120, 4)), 3), np.sort(rng.integers(0, 40, 120))
    y = np.digitize(2 * X[:, 0] - X[:, 1] + 0.5 * rng.normal(size=120), [0.0, 1.5])
    dump_svmlight_file(X, y, str(tmp_path / "judged"), query_id=qid, zero_based=False)
    return tmp_path / "judged", X, y, qid


def test_a_ranking_of_the_command_is_that_of_the_estimator(judged, hinge, tmp_path):
    path, X, y, qid = judged
    model, scores = tmp_path / "model", tmp_path / "scores"
    result = hinge("train", "-s", "6", "-c", "0.3", "-e", "1e-7", "--full-precision", path, model)
    assert (result.code, result.err) == (0, "")
    assert f"pairs in {len(np.unique(qid))} queries" in result.out
    machine = RankSVM(C=0.3, gamma=0.25, tol=1e-7).fit(X, y, qid)
    result = hinge("predict", path, model, scores)
    found = np.loadtxt(scores)
    np.testing.assert_allclose(found, machine.predict(X), atol=1e-5)
    assert result.out.splitlines() == [
        f"Ordered pairs = {100 * ordered_pairs(y, found, qid):g}% (ranking)",
        f"NDCG = {mean_ndcg(y, found, qid):g} (ranking)",
    ]
    figures = json.loads(hinge("predict", "--json", path, model, scores).out)
    assert figures["ordered_pairs"] == pytest.approx(machine.score(X, y, qid))


def test_limits_and_figures(judged, hinge, tmp_path):
    path = judged[0]
    result = hinge("train", "-s", "6", "--time-limit", "1e-9", "-q", path, tmp_path / "model")
    assert result.code == 0
    assert "did not converge (time_limit)" in result.err
    figures = json.loads(hinge("train", "-s", "6", "--json", path, tmp_path / "model").out)
    assert figures["machines"][0]["status"] == "converged"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-v", "3"], "-v does not keep queries whole"),
        (["-b", "1"], "ranking has no probabilities"),
        (["-t", "3"], "positive semi-definite"),
        (["-c", "-1"], "C <= 0"),
    ],
)
def test_what_rankings_do_not_have_is_refused(options, message, judged, hinge):
    result = hinge("train", "-s", "6", *options, judged[0])
    assert result.code == 1
    assert message in result.err


def test_there_is_no_grid_of_rankings(judged, hinge):
    result = hinge("grid", "-s", "6", judged[0])
    assert result.code == 1
    assert "folds do not keep queries whole" in result.err


def test_a_file_without_pairs_is_refused(hinge, tmp_path):
    path = tmp_path / "alone"
    path.write_text("1 qid:1 1:1\n2 qid:2 1:2\n")
    result = hinge("train", "-s", "6", path, tmp_path / "model")
    assert result.code == 1
    assert "nothing to rank" in result.err
