"""Hinge in the place of scikit-learn's support vector machines, for programs that import those.

>>> import hinge
>>> import sklearn.svm
>>> with hinge.patched():
...     sklearn.svm.SVC is hinge.SVC
True

``python -m hinge.patch script.py arguments`` runs a script like that. So `hinge.patch` is a module, and because
``hinge.patch()`` is what one writes in a program, the module can be called: that is `switch.patch`.
"""

from __future__ import annotations

import sys
from types import ModuleType

from hinge.patch.switch import is_patched, patch, patched, unpatch

__all__ = ["is_patched", "patched", "unpatch"]


class _CallableModule(ModuleType):
    """A module that does the one thing it is named after."""

    def __call__(self) -> None:
        patch(stacklevel=3)


_CallableModule.__call__.__doc__ = patch.__doc__
sys.modules[__name__].__class__ = _CallableModule
