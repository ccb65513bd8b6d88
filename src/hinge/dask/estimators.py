"""The five machines, trained on a Dask cluster."""

from __future__ import annotations

from hinge.dask.machines import OnCluster, on_cluster
from hinge.estimators.nu_svc import NuSVC
from hinge.estimators.one_class import OneClassSVM
from hinge.estimators.regression import SVR, NuSVR
from hinge.estimators.svc import SVC


@on_cluster(SVC)
class DaskSVC(OnCluster, SVC):  # type: ignore[misc]
    """Support vector classification on a Dask cluster: the machine that `hinge.SVC` would find, exactly.

    Parameters
    ----------
    client : distributed.Client or None, default=None
        The connection to the cluster; None for the one that Dask would use. It is not pickled.
    checkpoint : path or None, default=None
        A file that holds where the fit stands, every few seconds. With ``warm_start=True`` a fit goes on from it.
    **parameters
        Those of `hinge.SVC`, except for kernels that are not functions of features, ``solver="smo"`` and ``stop``.

    See Also
    --------
    hinge.SVC : The same on one computer, with all parameters and attributes.

    Notes
    -----
    X, y and weights are Dask Arrays or DataFrames with the same partitions, or data of this process. Workers may
    die, restart and join during a fit. ``report_.cluster`` tells what it asked of them.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from hinge.dask import DaskSVC
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(400, noise=0.2, random_state=0)
    >>> X, y = da.from_array(X, chunks=(100, 2)), da.from_array(y, chunks=100)
    >>> with Client(processes=False, n_workers=1, dashboard_address=":0") as client:
    ...     machine = DaskSVC(client=client).fit(X, y)
    ...     labels = machine.predict(X).compute()
    >>> machine.report_.converged, labels.shape, type(machine.to_local()).__name__
    (True, (400,), 'SVC')
    """


@on_cluster(NuSVC)
class DaskNuSVC(OnCluster, NuSVC):  # type: ignore[misc]
    """ν-support vector classification on a Dask cluster: the machine that `hinge.NuSVC` would find, exactly."""


@on_cluster(SVR)
class DaskSVR(OnCluster, SVR):  # type: ignore[misc]
    """ε-support vector regression on a Dask cluster: the machine that `hinge.SVR` would find, exactly."""


@on_cluster(NuSVR)
class DaskNuSVR(OnCluster, NuSVR):  # type: ignore[misc]
    """ν-support vector regression on a Dask cluster: the machine that `hinge.NuSVR` would find, exactly."""


@on_cluster(OneClassSVM)
class DaskOneClassSVM(OnCluster, OneClassSVM):  # type: ignore[misc]
    """The region of the data found on a Dask cluster: the machine that `hinge.OneClassSVM` would find, exactly."""
