"""The classes of scikit-learn that ours can stand for: by name, in `isinstance`, and in pickles.

`hinge.patch` puts our classes where scikit-learn's were. What must be true of estimators while that lasts is here:
scikit-learn's own machines count as instances of the class that has taken their name, and their pickles, which
find our class under that name, still load as what they were.
"""

from __future__ import annotations

import warnings
from abc import ABCMeta
from functools import cache
from inspect import isclass
from typing import Any

from hinge._version import __version__

#: Our classes that have taken the name of one of scikit-learn's, and which; empty unless patched.
STANDING_FOR: dict[type, type] = {}


@cache
def originals() -> dict[str, type]:
    """Return scikit-learn's own classes of support vector machines, by name.

    `hinge.patch` asks before it changes anything, so that the answer is theirs whenever it is given.
    """
    import sklearn.svm  # not above: whoever only fits does without the time that it takes

    public = {name: getattr(sklearn.svm, name, None) for name in sklearn.svm.__all__}
    return {name: value for name, value in public.items() if isclass(value)}


class StandInType(ABCMeta):
    """Type of classes whose instances include those of the class that they stand for.

    A kind of ABCMeta because scikit-learn's classes are: they can be mixed with abstract classes.
    """

    # type's own tests: those of ABCMeta ask all subclasses, and would remember answers beyond the patch.
    def __instancecheck__(cls, instance: Any) -> bool:
        return type.__instancecheck__(cls, instance) or cls.__subclasscheck__(type(instance))

    def __subclasscheck__(cls, subclass: type) -> bool:
        if type.__subclasscheck__(cls, subclass):
            return True
        original = STANDING_FOR.get(cls)
        return original is not None and issubclass(subclass, original)


class StandIn(metaclass=StandInType):
    """Base of estimators that can stand for scikit-learn's; their pickles carry Hinge's version."""

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = {**super().__getstate__(), "_hinge_version": __version__}  # type: ignore[dict-item]
        state.pop("_fitted", None)  # the training samples do not travel
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        original = STANDING_FOR.get(type(self))
        if original is not None and "_sklearn_version" in state:
            # A pickle of scikit-learn's own, which names a class that is ours for the time being.
            self.__dict__ = {}
            self.__class__ = original  # type: ignore[assignment]
            self.__setstate__(state)
            return
        own = dict(state)
        written_by = own.pop("_hinge_version", None)
        if written_by != __version__:
            by = "a version that left no mark" if written_by is None else f"version {written_by}"
            warnings.warn(
                f"This {type(self).__name__} was saved by Hinge, {by}, and is loaded by version {__version__}: "
                "its attributes may not be what this version expects. Fit it again; or load it with the version "
                "that saved it and keep it as a model file (hinge.estimators.save_model) or as scikit-learn's "
                "(as_sklearn), which do not depend on Hinge's versions.",
                stacklevel=2,
            )
        super().__setstate__(own)  # type: ignore[misc]
