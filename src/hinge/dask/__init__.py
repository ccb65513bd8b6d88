"""Exact training on a Dask cluster: the same machines as in `hinge`, for data that one computer does not hold."""

from __future__ import annotations

from hinge.dask.estimators import DaskNuSVC, DaskNuSVR, DaskOneClassSVM, DaskSVC, DaskSVR
from hinge.dask.reading import read_svmlight

__all__ = ["DaskNuSVC", "DaskNuSVR", "DaskOneClassSVM", "DaskSVC", "DaskSVR", "read_svmlight"]
