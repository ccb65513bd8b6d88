"""scikit-learn's own checks of an estimator: all of them, none expected to fail."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from hinge import SVC, SVR, NuSVC, NuSVR, OneClassSVM

pytestmark = [
    # Some checks provoke these on purpose, by max_iter=1000 and by small classes.
    pytest.mark.filterwarnings("ignore:Solver terminated early"),
    pytest.mark.filterwarnings("ignore:nu = 0.5 is infeasible for"),
]


@parametrize_with_checks([SVC(), NuSVC(), SVR(), NuSVR(), OneClassSVM()])
def test_check(estimator, check):
    check(estimator)


@parametrize_with_checks([SVC(probability=True), SVC(multi_class="ovr"), SVR(probability=True)])
def test_check_of_options(estimator, check):
    check(estimator)
