"""`OneClassSVM`: novelty detection by a plane."""

from __future__ import annotations

from hinge.estimators.compressing import Compressible
from hinge.estimators.documentation import documented
from hinge.estimators.novelty import NoveltyDetector
from hinge.estimators.parameters import parametrised
from hinge.estimators.updates import Updatable
from hinge.training.course import Fit
from hinge.training.data import TrainingData
from hinge.training.formulation import OneClass


@documented
@parametrised
class OneClassSVM(NoveltyDetector, Updatable, Compressible):
    """Novelty detection: the region where most of the data lies.

    Finds a function that is positive on a region with at least a share 1 − ν of the samples, as far from the
    origin of the kernel's space as possible.

    Parameters
    ----------
    %(kernel)s
    %(tol)s
    nu : float, default=0.5
        In (0, 1]: bounds the share of outliers among the training samples from above and that of support vectors
        from below.
    %(shrinking)s
    %(verbose)s
    probability : bool, default=False
        Compute density marks, which give `predict_proba`.
    %(ours)s
    %(stop)s

    Attributes
    ----------
    %(support)s
    n_support_ : int32 array of shape (1,)
        Number of support vectors.
    dual_coef_ : array or sparse matrix of shape (1, n_SV)
        Coefficients of the support vectors.
    intercept_ : array of shape (1,)
        The intercept.
    offset_ : array of shape (1,)
        ``-intercept_``: `decision_function` is `score_samples` minus this.
    coef_ : array or sparse matrix of shape (1, n_features)
        Weights of the features; only for the linear kernel.
    n_iter_ : int
        Steps that the solver took.
    density_marks_ : array of shape (11,)
        Decision values that cut the outliers and the others into five parts each; only with
        ``probability=True``.
    %(outcome)s

    See Also
    --------
    SVDD : The smallest sphere around the data.

    Examples
    --------
    >>> import numpy as np
    >>> from hinge import OneClassSVM
    >>> X = np.array([[0.0], [0.44], [0.45], [0.46], [1.0]])
    >>> machine = OneClassSVM(gamma="auto").fit(X)
    >>> machine.predict(X)
    array([-1,  1,  1,  1, -1])
    """

    def _formulation(self, data: TrainingData) -> OneClass:
        return OneClass(data, float(self.nu))

    def _publish(self, fit: Fit) -> None:
        super()._publish(fit)
        self.offset_ = 0.0 - fit.model.intercepts
