"""`GridSearch` against scikit-learn's GridSearchCV: the same table, whatever is shared inside."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import svm
from sklearn.base import clone
from sklearn.datasets import make_classification, make_regression
from sklearn.exceptions import ConvergenceWarning, FitFailedWarning
from sklearn.metrics import make_scorer, mean_absolute_error
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, ShuffleSplit, StratifiedKFold

from hinge import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from hinge.selection import GridSearch
from hinge.selection.unit import _machines
from hinge.selection.workshop import Workshop

TIGHT = 1e-7


def classes(n_classes=2, n=120, seed=0):
    return make_classification(
        n, 6, n_informative=4, n_classes=n_classes, n_clusters_per_class=1, flip_y=0.1, random_state=seed
    )


def numbers(n=100, seed=0):
    X, y = make_regression(n, 5, noise=5.0, random_state=seed)
    return X, y / np.abs(y).max()


def both(estimator, grid, X, y, fit=None, **options):
    """Search by both; return them."""
    fit = fit or {}
    ours = GridSearch(estimator, grid, **options).fit(X, y, **fit)
    theirs = GridSearchCV(clone(estimator), grid, **options).fit(X, y, **fit)
    return ours, theirs


def assert_same_table(ours, theirs, atol=1e-12):
    """Every column of GridSearchCV's that is not a time is there and equal."""
    assert ours.cv_results_["params"] == theirs.cv_results_["params"]
    for name, column in theirs.cv_results_.items():
        mine = ours.cv_results_[name]
        if "time" in name or name == "params":
            assert len(mine) == len(column)
        elif name.startswith("param_"):
            np.testing.assert_array_equal(mine, column)
            np.testing.assert_array_equal(mine.mask, column.mask)
        elif not name.startswith("rank"):  # ranks split hairs
            np.testing.assert_allclose(mine, column, atol=atol, rtol=0, err_msg=name)
    if hasattr(theirs, "best_index_"):
        assert ours.best_index_ == theirs.best_index_
        assert ours.best_params_ == theirs.best_params_
    for k in range(ours.n_splits_):
        assert ours.cv_results_[f"split{k}_converged"].all()
        assert (ours.cv_results_[f"split{k}_violation"] <= ours.estimator.tol).all()


GRIDS = {
    "svc": (SVC(tol=TIGHT), {"C": [0.1, 10.0, 1.0], "gamma": [0.05, 0.5]}),
    "svc-kernels": (
        SVC(tol=TIGHT),
        [
            {"kernel": ["linear"], "C": [0.1, 1.0]},
            {"kernel": ["poly"], "degree": [2, 3], "coef0": [0.0, 1.0], "gamma": [0.1]},
            {"kernel": ["laplacian", "sigmoid"], "gamma": [0.05], "C": [1.0, 4.0]},
        ],
    ),
    "svc-scale": (SVC(tol=TIGHT), {"C": [0.5, 5.0], "gamma": ["scale", "auto"]}),
    "svc-balanced": (SVC(tol=TIGHT, gamma=0.3), {"C": [0.5, 5.0], "class_weight": ["balanced", {1: 3.0}, None]}),
    "nu-svc": (NuSVC(tol=TIGHT), {"nu": [0.2, 0.4, 0.3], "gamma": [0.05, 0.5]}),
    # Weights that make nu infeasible, so that each machine is solved a second time.
    "nu-svc-weights": (NuSVC(tol=TIGHT, gamma=0.5, class_weight={0: 0.01, 1: 1.0}), {"nu": [0.2, 0.4]}),
}


@pytest.mark.parametrize("name", GRIDS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_classifiers_table_is_that_of_grid_search_cv(name, n_classes):
    estimator, grid = GRIDS[name]
    X, y = classes(n_classes)
    assert_same_table(*both(estimator, grid, X, np.array(["a", "b", "c"])[y] if name == "svc" else y, cv=4))


@pytest.mark.parametrize(
    ("estimator", "grid"),
    [
        (SVR(tol=TIGHT), {"C": [1.0, 10.0], "epsilon": [0.05, 0.2], "gamma": [0.05, 0.3]}),
        (NuSVR(tol=TIGHT), {"C": [1.0, 10.0], "nu": [0.3, 0.6], "gamma": [0.05, 0.3]}),
    ],
)
def test_a_regressors_table_is_that_of_grid_search_cv(estimator, grid):
    X, y = numbers()
    assert_same_table(*both(estimator, grid, X, y, cv=KFold(4), return_train_score=True), atol=1e-5)


def test_the_table_of_a_one_class_machine_is_that_of_grid_search_cv():
    X, _ = classes()
    grid = {"nu": [0.1, 0.3, 0.2], "gamma": [0.05, 0.5]}

    def mean_score(machine, X, y=None):
        return float(machine.score_samples(X).mean())

    ours, theirs = both(OneClassSVM(tol=TIGHT), grid, X, None, cv=KFold(4), scoring=mean_score)
    assert_same_table(ours, theirs, atol=1e-4)


def test_several_metrics_training_scores_and_a_named_refit():
    X, y = classes()
    grid = {"C": [0.1, 10.0], "gamma": [0.05, 0.5]}
    options = {"scoring": {"auc": "roc_auc", "acc": "accuracy"}, "refit": "auc", "return_train_score": True}
    ours, theirs = both(SVC(tol=TIGHT), grid, X, y, cv=3, **options)
    assert_same_table(ours, theirs, atol=1e-3)  # auc: two decisions within the tolerance may swap
    assert set(ours.scorer_) == {"auc", "acc"}
    assert ours.multimetric_


def test_a_scorer_sees_a_fitted_machine():
    X, y = classes()

    def support_share(machine, X, y):
        assert len(machine.predict(X[:3])) == 3  # data that the search does not know of
        return len(machine.support_) / machine.shape_fit_[0]

    grid = {"C": [0.1, 10.0]}
    ours, theirs = both(SVC(tol=TIGHT, gamma=0.2), grid, X, y, cv=3, scoring=support_share)
    assert_same_table(ours, theirs)


def test_groups_weights_and_repeated_splits():
    X, y = classes()
    rng = np.random.default_rng(0)
    groups, weights = rng.integers(0, 6, len(y)), rng.uniform(0.2, 3.0, len(y))
    weights[::7] = 0.0
    grid = {"C": [0.5, 5.0], "gamma": ["scale", 0.2]}
    ours, theirs = both(
        SVC(tol=TIGHT), grid, X, y, fit={"groups": groups, "sample_weight": weights}, cv=GroupKFold(3)
    )
    assert_same_table(ours, theirs)
    splitter = ShuffleSplit(4, test_size=0.3, random_state=1)
    assert_same_table(*both(SVC(tol=TIGHT, class_weight="balanced"), grid, X, y, cv=splitter))


@pytest.mark.parametrize("storage", ["csr", "float32", "bits", "precomputed", "callable"])
def test_every_storage(storage):
    X, y = classes()
    grid = {"C": [0.5, 5.0]}
    estimator = SVC(tol=TIGHT, gamma=0.2)
    if storage == "csr":
        X = sp.csr_array(np.where(np.abs(X) < 0.7, 0.0, X))
    elif storage == "float32":
        X = X.astype(np.float32)
        estimator.tol = 1e-5
    elif storage == "bits":
        X = (X > 0).astype(float)
    elif storage == "precomputed":
        X, estimator = X @ X.T, SVC(tol=TIGHT, kernel="precomputed")
    else:
        estimator = SVC(tol=TIGHT, kernel=lambda A, B: (A @ B.T + 1) ** 2 / 36)
    assert_same_table(*both(estimator, grid, X, y, cv=4))


def test_without_room_for_the_matrix_the_table_is_the_same_and_it_says_so():
    X, y = classes(3, n=200)
    grid = {"C": [0.5, 5.0], "gamma": [0.1, 0.5]}
    roomy = GridSearch(SVC(tol=TIGHT), grid, cv=4).fit(X, y)
    tight = GridSearch(SVC(tol=TIGHT, cache_size=0.1), grid, cv=4).fit(X, y)
    assert roomy.shares_kernel_
    assert not tight.shares_kernel_
    np.testing.assert_array_equal(roomy.cv_results_["mean_test_score"], tight.cv_results_["mean_test_score"])


def test_a_single_kernel_shares_its_values_in_little_memory(monkeypatch):
    """A unit that is alone needs no comparisons beside its values: these take their place."""
    X, y = classes(2, n=300)
    shared = []
    matrix = Workshop._matrix
    monkeypatch.setattr(Workshop, "_matrix", lambda *args: shared.append(args[2]) or matrix(*args))
    scores = [
        GridSearch(SVC(tol=TIGHT, gamma=0.2, cache_size=megabytes), {"C": [0.1, 1.0, 10.0]}, cv=4, n_jobs=2)
        .fit(X, y)
        .cv_results_["mean_test_score"]
        for megabytes in (100.0, 2 * 8 * 300**2 / 1024**2, 1.2 * 8 * 300**2 / 1024**2)
    ]
    assert shared == [True, False]  # comparisons are kept, are not, and then there is no room for the values
    np.testing.assert_allclose(scores[1], scores[0], atol=1e-12)
    np.testing.assert_allclose(scores[2], scores[0], atol=1e-12)


def test_one_thread_and_several_give_the_same_table():
    X, y = classes(3)
    grid = {"C": [0.5, 5.0], "gamma": [0.1, 0.5, 1.0]}
    searches = [GridSearch(SVC(), grid, cv=5, n_jobs=n).fit(X, y) for n in (1, 2, 3)]
    searches.append(GridSearch(SVC(gamma=0.1), {"C": [0.5, 5.0]}, cv=5, n_jobs=2).fit(X, y))
    for search in searches[1:3]:
        np.testing.assert_array_equal(
            search.cv_results_["split3_test_score"], searches[0].cv_results_["split3_test_score"]
        )
    same = [p["gamma"] == 0.1 for p in searches[0].cv_results_["params"]]
    np.testing.assert_array_equal(
        searches[3].cv_results_["mean_test_score"], searches[0].cv_results_["mean_test_score"][same]
    )


def test_the_best_machine_answers():
    X, y = classes()
    search = GridSearch(SVC(), {"C": [0.1, 1.0]}, cv=3).fit(X, y)
    best = clone(search.best_estimator_).fit(X, y)
    np.testing.assert_allclose(search.decision_function(X), best.decision_function(X))
    assert search.score(X, y) == best.score(X, y)
    np.testing.assert_array_equal(search.classes_, [0, 1])
    assert search.n_features_in_ == 6
    assert clone(search).get_params()["param_grid"] == {"C": [0.1, 1.0]}
    assert [len(reports) for reports in search.certificates_] == [3, 3]


def test_failed_fits_get_the_error_score():
    X, y = classes()
    rare = np.where(np.arange(len(y)) < 10, 1, 0)
    grid = {"nu": [0.1, 0.9]}
    with pytest.warns(FitFailedWarning, match="infeasible"), pytest.warns(UserWarning, match="non-finite"):
        search = GridSearch(NuSVC(), grid, cv=StratifiedKFold(3)).fit(X, rare)
    assert np.isnan(search.cv_results_["mean_test_score"][1])
    assert search.best_params_ == {"nu": 0.1}
    with pytest.raises(ValueError, match="infeasible"):
        GridSearch(NuSVC(), grid, cv=3, error_score="raise").fit(X, rare)
    with pytest.raises(ValueError, match="All the 3 fits failed"):
        GridSearch(NuSVC(), {"nu": [0.9]}, cv=3).fit(X, rare)


def test_a_limit_is_told():
    X, y = classes()
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        search = GridSearch(SVC(max_iter=3), {"C": [1.0]}, cv=3, refit=False).fit(X, y)
    assert not search.cv_results_["split0_converged"][0]


def test_only_our_own_estimators():
    with pytest.raises(TypeError, match="GridSearchCV"):
        GridSearch(svm.SVC(), {"C": [1.0]}).fit(*classes())


def test_a_machine_with_probabilities_is_fitted_plainly():
    X, y = classes()
    estimator = SVC(tol=TIGHT, gamma=0.2, probability=True, random_state=0)
    ours, theirs = both(estimator, {"C": [0.5, 5.0]}, X, y, cv=3, scoring="neg_log_loss")
    assert_same_table(ours, theirs, atol=1e-4)
    assert not ours.shares_kernel_


class Memory:
    """A checkpoint in a dictionary."""

    def __init__(self):
        self.cells = {}

    def known(self, params):
        return self.cells.get(tuple(sorted(params.items())))

    def store(self, cell):
        assert tuple(sorted(cell.params.items())) not in self.cells
        self.cells[tuple(sorted(cell.params.items()))] = cell


def test_cells_are_stored_and_found_again():
    X, y = classes()
    grid = {"C": [0.1, 1.0, 10.0], "gamma": [0.1, 0.5]}
    memory = Memory()
    first = GridSearch(SVC(), grid, cv=3, checkpoint=memory).fit(X, y)
    assert len(memory.cells) == 6
    for key in list(memory.cells)[::2]:
        del memory.cells[key]
    again = GridSearch(SVC(), grid, cv=3, checkpoint=memory).fit(X, y)
    np.testing.assert_array_equal(first.cv_results_["mean_test_score"], again.cv_results_["mean_test_score"])


@pytest.mark.parametrize("strategy", ["halving", "refine"])
def test_short_cuts_find_a_candidate_nearly_as_good(strategy):
    X, y = classes(n=300)
    grid = {"C": 2.0 ** np.arange(-5, 9), "gamma": 2.0 ** np.arange(-8, 2)}
    whole = GridSearch(SVC(), grid, cv=3, refit=False).fit(X, y)
    short = GridSearch(SVC(), grid, cv=3, strategy=strategy).fit(X, y)
    n_whole = len(whole.cv_results_["params"])
    results = short.cv_results_
    full = results["n_resources"] == results["n_resources"].max()
    assert full.sum() <= n_whole / 2.5
    assert short.best_score_ >= whole.best_score_ - 0.03
    pairs = zip(whole.cv_results_["params"], whole.cv_results_["mean_test_score"], strict=True)
    by_params = {tuple(params.items()): score for params, score in pairs}
    for params, score in zip(np.array(results["params"])[full], results["mean_test_score"][full], strict=True):
        assert abs(score - by_params[tuple(params.items())]) <= 1.5 / 100  # another start, another hair's breadth


def test_searching_leaves_no_warnings_behind():
    X, y = classes()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        GridSearch(SVC(), {"C": [1.0]}, cv=3, scoring=make_scorer(mean_absolute_error)).fit(X, y)


def test_an_invalid_parameter_that_no_candidate_sets_is_every_candidates_error():
    machines, errors = _machines(SVC(tol=-1.0), [{"C": 1.0}, {"C": 2.0}])
    assert [machine.C for machine in machines] == [1.0, 2.0]
    assert all("'tol' parameter of SVC" in str(error) for error in errors)
    _, errors = _machines(SVC(), [{"C": 1.0}, {"C": -2.0}])
    assert errors[0] is None
    assert "'C' parameter of SVC" in str(errors[1])
