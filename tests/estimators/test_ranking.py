"""`RankSVM` as users meet it: queries, weights, storage, limits, scores, files and bad input."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import ndcg_score, roc_auc_score
from sklearn.model_selection import GroupKFold

from hinge import SVC, RankSVM, certificate
from hinge.estimators import load_model, mean_ndcg, ordered_pairs, save_model
from reference import comparable_pairs


def sample(n=120, d=4, n_queries=12, seed=0):
    """Grades 0 to 4 with ties, queries of very different sizes, some of one sample."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    qid = np.minimum(rng.geometric(0.15, n), n_queries) * 7 - 3
    qid[:3] = [1001, 1002, 1003]
    f = X @ np.arange(1, d + 1) + 2 * rng.normal(size=n)
    return X, np.digitize(f, np.quantile(f, [0.3, 0.6, 0.8, 0.95])).astype(float), qid


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_it_is_svc_without_intercept_on_differences(kernel):
    X, y, qid = sample(60)
    pairs = comparable_pairs(y, qid)
    signs = np.where(np.arange(len(pairs)) % 2, 1, -1)  # a pair is a difference and the class +1, or both negated
    machine = RankSVM(C=0.5, kernel=kernel, gamma=0.3, tol=1e-8).fit(X, y, qid)
    if kernel == "linear":
        differences = signs[:, None] * (X[pairs[:, 0]] - X[pairs[:, 1]])
        explicit = SVC(C=0.5, kernel="linear", fit_intercept=False, tol=1e-8).fit(differences, signs)
        np.testing.assert_allclose(machine.coef_, explicit.coef_, atol=1e-6)
        np.testing.assert_allclose(machine.predict(X), X @ explicit.coef_[0], atol=1e-6)
    else:
        K = np.exp(-0.3 * ((X[:, None] - X) ** 2).sum(axis=2))
        D = np.zeros((len(pairs), len(X)))
        D[np.arange(len(pairs)), pairs[:, 0]], D[np.arange(len(pairs)), pairs[:, 1]] = signs, -signs
        explicit = SVC(C=0.5, kernel="precomputed", fit_intercept=False, tol=1e-8).fit(D @ K @ D.T, signs)
        beta = np.zeros(len(pairs))
        beta[explicit.support_] = explicit.dual_coef_[0]
        np.testing.assert_allclose(machine.predict(X), K @ (D.T @ beta), atol=1e-6)
    assert machine.report_.objective == pytest.approx(explicit.report_.objective, rel=1e-9)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "precomputed", "laplacian"])
@pytest.mark.parametrize("store", [np.asarray, np.float32, sp.csr_matrix, sp.csc_array])
def test_every_storage_and_kernel_has_its_certificate(kernel, store):
    X, y, qid = sample()
    if kernel == "precomputed":
        if store in (sp.csr_matrix, sp.csc_array):
            pytest.skip("kernel matrices are dense")
        X = X @ X.T
    data = store(X)
    weights = np.random.default_rng(1).uniform(0, 2, len(y))
    weights[5:20] = 0
    machine = RankSVM(C=0.1, kernel=kernel, gamma=0.5, coef0=1.0).fit(data, y, qid, weights)
    proof = machine.certificate(data, y, qid, weights)
    assert proof.proves(1e-3)
    assert proof.objective == pytest.approx(machine.report_.objective, rel=1e-9)
    assert not np.isin(machine.support_, np.arange(5, 20)).any()
    np.testing.assert_allclose(machine.decision_function(data), machine.predict(data))
    assert machine.score(data, y, qid) > 0.7


def test_a_certificate_does_not_prove_another_machine():
    X, y, qid = sample()
    machine = RankSVM(C=0.1).fit(X, y, qid)
    assert not machine.certificate(X, y, np.roll(qid, 1)).proves(1e-3)
    assert not machine.certificate(X, -y, qid).proves(1e-3)
    machine._model.coefficients[0, 3] *= 1.01
    assert not machine.certificate(X, y, qid).proves(1e-4)
    with pytest.raises(ValueError, match="fitted to 120 samples"):
        machine.certificate(X[1:], y[1:], qid[1:])
    with pytest.raises(NotFittedError):
        RankSVM().certificate(X, y, qid)


def test_weights_are_repetitions_and_order_does_not_matter():
    X, y, qid = sample()
    counts = np.random.default_rng(3).integers(0, 4, len(y))
    machine = RankSVM(C=0.1, gamma=0.5, tol=1e-8)
    weighted = machine.fit(X, y, qid, counts).predict(X)
    again = np.repeat(np.arange(len(y)), counts)
    np.testing.assert_allclose(machine.fit(X[again], y[again], qid[again]).predict(X), weighted, atol=1e-6)
    order = np.random.default_rng(4).permutation(len(again))
    again = again[order]
    np.testing.assert_allclose(machine.fit(X[again], y[again], qid[again]).predict(X), weighted, atol=1e-6)


def test_only_the_order_of_grades_within_a_query_matters():
    X, y, qid = sample()
    machine = RankSVM(C=0.1, tol=1e-8)
    scores = machine.fit(X, y, qid).predict(X)
    np.testing.assert_allclose(machine.fit(X, np.exp(y) + qid, qid).predict(X), scores, atol=1e-6)
    names = np.array([f"query {number}" for number in qid])
    np.testing.assert_allclose(machine.fit(X, y, names).predict(X), scores, atol=1e-6)


def test_weights_of_queries():
    X, y, qid = sample()
    named = RankSVM(C=0.1, tol=1e-8, query_weight={4: 3.0, 11: 0.5}).fit(X, y, qid).predict(X)
    weights = np.where(qid == 4, np.sqrt(3.0), np.where(qid == 11, np.sqrt(0.5), 1.0))
    gamma = RankSVM().fit(X, y, qid)._gamma
    by_sample = RankSVM(C=0.1, tol=1e-8, gamma=gamma).fit(X, y, qid, weights).predict(X)
    np.testing.assert_allclose(named, by_sample, atol=1e-6)
    balanced = RankSVM(C=0.1, query_weight="balanced").fit(X, y, qid)
    problem = balanced._fitted.formulation.problem
    pairs = comparable_pairs(y, qid)
    totals = np.bincount(np.unique(qid, return_inverse=True)[1][pairs[:, 0]], weights=problem.prices(pairs))
    np.testing.assert_allclose(totals[totals > 0], totals.max(), rtol=1e-9)
    assert totals.sum() == pytest.approx(0.1 * len(pairs))


def test_scores_are_those_of_scikit_learn():
    X, y, qid = sample()
    scores = np.round(X[:, 0], 1)  # with ties
    assert ordered_pairs(y > 2, scores) == pytest.approx(roc_auc_score(y > 2, scores))
    weights = np.random.default_rng(0).uniform(size=len(y))
    assert ordered_pairs(y > 2, scores, sample_weight=weights) == pytest.approx(
        roc_auc_score(y > 2, scores, sample_weight=weights)
    )
    pairs = comparable_pairs(y, qid)
    difference = scores[pairs[:, 0]] - scores[pairs[:, 1]]
    assert ordered_pairs(y, scores, qid) == pytest.approx(np.mean((difference > 0) + 0.5 * (difference == 0)))
    assert mean_ndcg(y, scores) == pytest.approx(ndcg_score([y], [scores]))
    queries = [qid == q for q in np.unique(qid) if np.ptp(y[qid == q]) > 0]
    expected = np.mean([ndcg_score([y[mine]], [scores[mine]], k=3) for mine in queries])
    assert mean_ndcg(y, scores, qid, k=3) == pytest.approx(expected)
    with pytest.raises(ValueError, match="not negative"):
        mean_ndcg(y - 1, scores)
    with pytest.raises(ValueError, match="different grades"):
        ordered_pairs(np.ones(5), np.arange(5))


def test_unseen_queries_are_ranked_better_than_by_regression():
    """NDCG on generated data with ties and queries of one sample, whose levels differ by query."""
    from hinge import SVR

    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(600, 6)), rng.integers(0, 60, 600)
    qid[:10] = np.arange(100, 110)
    level = 10 * rng.normal(size=200)
    y = np.maximum(np.round(2 * X[:, 0] - X[:, 1] * X[:, 2] + rng.normal(size=600)) + 3, 0)
    train, test = next(GroupKFold(3).split(X, y, qid))
    ranked = RankSVM(C=0.1).fit(X[train], (y + np.round(level)[qid])[train], qid[train])
    fitted = SVR().fit(X[train], (y + np.round(level)[qid])[train])
    ours, theirs = (mean_ndcg(y[test], machine.predict(X[test]), qid[test]) for machine in (ranked, fitted))
    assert ours > 0.93
    assert ours > theirs + 0.02


def test_limits_leave_the_best_machine_so_far():
    X, y, qid = sample(400)
    machine = RankSVM(C=10.0, tol=1e-6)
    with pytest.warns(ConvergenceWarning, match="iteration_limit"):
        few = machine.set_params(max_iter=10).fit(X, y, qid)
    assert few.report_.gap > 0
    proof = few.certificate(X, y, qid)
    assert proof.violation == pytest.approx(few.report_.violation, rel=1e-6)
    assert proof.sum_error < 1e-9
    machine.set_params(max_iter=-1, time_limit=1e-9)
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        assert not machine.fit(X, y, qid).report_.converged
    objectives = []
    machine.set_params(time_limit=None, callback=lambda p: objectives.append(p.objective)).fit(X, y, qid)
    assert (np.diff(objectives) <= 0).all()
    n_steps = len(objectives)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        machine.set_params(callback=lambda p: True).fit(X, y, qid)
    machine.set_params(callback=lambda p: objectives.append(p.objective), warm_start=True)
    again = machine.fit(X, y, qid).predict(X)
    objectives.clear()
    np.testing.assert_allclose(machine.fit(X, y, qid).predict(X), again, atol=1e-4)
    assert len(objectives) < n_steps


def test_a_gap_ends_a_fit_before_the_tolerance():
    X, y, qid = sample(400)
    machine = RankSVM(C=0.1, tol=1e-9, gap_tol=1e-2).fit(X, y, qid)
    assert machine.report_.converged
    assert machine.report_.violation > 1e-9
    assert machine.certificate(X, y, qid).gap <= 1e-2 * abs(machine.report_.objective)


def test_little_cache_is_another_way_to_the_same_answer():
    X, y, qid = sample(300)
    whole = RankSVM(C=0.1, tol=1e-6).fit(X, y, qid)
    little = RankSVM(C=0.1, tol=1e-6, cache_size=0.1).fit(X, y, qid)
    assert little.report_.kernel_evaluations > whole.report_.kernel_evaluations
    np.testing.assert_allclose(little.predict(X), whole.predict(X), atol=1e-4)


def test_a_copy_from_a_file_ranks_and_proves_the_same():
    X, y, qid = sample()
    machine = RankSVM(C=0.1).fit(X, y, qid)
    copy = pickle.loads(pickle.dumps(machine))
    np.testing.assert_array_equal(copy.predict(X), machine.predict(X))
    assert copy.certificate(X, y, qid).proves(1e-3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"qid": [1, 2]}, "one value per sample: expected 120, got 2"),
        ({"qid": np.arange(120)}, "nothing to rank: no query has two samples of different grades"),
        ({"qid": np.full(120, np.nan)}, "qid contains NaN"),
        ({"y": np.ones(120)}, "nothing to rank"),
        ({"y": np.full(120, np.nan)}, "NaN"),
    ],
)
def test_bad_input_is_named(change, message):
    X, y, qid = sample()
    given = {"y": y, "qid": qid, **change}
    with pytest.raises(ValueError, match=message):
        RankSVM().fit(X, given["y"], given["qid"])


def test_bad_parameters_are_named():
    X, y, qid = sample()
    with pytest.raises(ValueError, match="sigmoid"):
        RankSVM(kernel="sigmoid").fit(X, y, qid)
    with pytest.raises(ValueError, match="names 5, which is no query"):
        RankSVM(query_weight={5: 2.0}).fit(X, y, qid)
    with pytest.raises(ValueError, match="must be positive"):
        RankSVM(query_weight={4: -1.0}).fit(X, y, qid)
    with pytest.raises(ValueError, match="'C'"):
        RankSVM(C=-1).fit(X, y, qid)
    assert not hasattr(RankSVM().fit(X, y, qid), "decision_interval")


def test_a_model_file_ranks_the_same(tmp_path):
    X, y, qid = sample()
    machine = RankSVM(C=0.1, kernel="poly", gamma=0.3, coef0=1.0).fit(X, y, qid)
    save_model(machine, tmp_path / "model", digits=17)
    again = load_model(tmp_path / "model")
    assert type(again) is RankSVM
    np.testing.assert_allclose(again.predict(X), machine.predict(X), rtol=1e-12)
    assert again.score(X, y, qid) == machine.score(X, y, qid)
    with pytest.raises(NotFittedError, match="without the dual variables of its pairs"):
        again.certificate(X, y, qid)


def test_the_library_proves_it_by_its_own_certificate():
    X, y, qid = sample()
    assert certificate(RankSVM(C=0.1).fit(X, y, qid), X, y, qid=qid).proves(1e-3)
