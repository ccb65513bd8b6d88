"""scikit-learn's own checks of an estimator: all of them, none expected to fail but what says why."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from hinge import SVC, SVDD, SVR, LinearSVC, LinearSVR, NuSVC, NuSVR, OneClassSVM, RankSVM, TransductiveSVC
from hinge.kernel.kernels import kind_of
from strategies import NAMED

pytestmark = [
    # Some checks provoke these on purpose, by max_iter=1000 and by small classes.
    pytest.mark.filterwarnings("ignore:Solver terminated early"),
    pytest.mark.filterwarnings("ignore:nu = 0.5 is infeasible for"),
    pytest.mark.filterwarnings("ignore:nu = 0.5 is smaller than these data allow"),
]


def _where_minus_one_is_a_class(estimator):
    """The one check that names a class -1, but for scikit-learn's own semi-supervised estimators."""
    is_open = isinstance(estimator, TransductiveSVC)
    return {"check_classifiers_classes": "-1 means unlabelled"} if is_open else {}


@parametrize_with_checks(
    [
        SVC(),
        NuSVC(),
        SVR(),
        NuSVR(),
        OneClassSVM(),
        SVDD(),
        LinearSVC(),
        LinearSVR(),
        RankSVM(),
        TransductiveSVC(),
    ],
    expected_failed_checks=_where_minus_one_is_a_class,
)
def test_check(estimator, check):
    check(estimator)


def _beyond_the_tags(estimator):
    """The one check that makes negative features of its own, whatever the tags say."""
    is_picky = kind_of(estimator.kernel).needs_nonnegative
    return {"check_class_weight_classifiers": "its features are negative"} if is_picky else {}


@parametrize_with_checks(
    [SVC(kernel=name) for name in NAMED if name != SVC().kernel], expected_failed_checks=_beyond_the_tags
)
def test_check_of_every_kernel(estimator, check):
    check(estimator)


@parametrize_with_checks(
    [
        SVC(probability=True),
        SVC(multi_class="ovr"),
        SVR(probability=True),
        SVC(loss="squared_hinge"),
        SVR(loss="squared_epsilon_insensitive"),
    ]
)
def test_check_of_options(estimator, check):
    check(estimator)


def _of_no_kernel_matrix(estimator):
    """Checks of outlier detectors that never make a kernel matrix, whatever the tags say."""
    names = ("check_outliers_train", "check_outliers_fit_predict") if isinstance(estimator, OneClassSVM) else ()
    return dict.fromkeys(
        names, "they pass features in the place of a kernel matrix; scikit-learn's machine fails, too"
    )


@pytest.mark.filterwarnings("ignore:the precomputed kernel matrix is not symmetric")
@pytest.mark.filterwarnings("ignore:the weight vector vanishes")
@parametrize_with_checks(
    [machine(kernel="precomputed") for machine in (SVC, NuSVC, SVR, NuSVR, OneClassSVM)],
    expected_failed_checks=_of_no_kernel_matrix,
)
def test_check_of_precomputed_matrices(estimator, check):
    check(estimator)


@parametrize_with_checks(
    [
        LinearSVC(loss="hinge"),
        LinearSVC(multi_class="crammer_singer"),
        LinearSVC(intercept_scaling=float("inf")),
        LinearSVR(loss="squared_epsilon_insensitive", fit_intercept=False),
    ]
)
def test_check_of_linear_options(estimator, check):
    check(estimator)
