"""The switch: our classes take the places of scikit-learn's, and give them back."""

from __future__ import annotations

import copyreg
import logging
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from inspect import isclass
from threading import RLock
from types import ModuleType
from typing import NamedTuple

import sklearn

from hinge import estimators
from hinge.estimators.stand_in import STANDING_FOR, originals
from hinge.patch.pickles import reduce_by_name

_LOGGER = logging.getLogger("hinge")
_LOCK = RLock()


class _Binding(NamedTuple):
    """A name in a module that holds a class."""

    module: ModuleType
    name: str
    value: type

    def __str__(self) -> str:
        alias = "" if self.name == self.value.__name__ else f" as {self.name}"
        return f"{self.value.__name__}{alias}"


# What has been replaced, in the order of replacement; empty unless patched.
_REPLACED: list[_Binding] = []


def is_patched() -> bool:
    """Whether scikit-learn's support vector machines are Hinge's at present.

    Examples
    --------
    >>> import hinge
    >>> with hinge.patched():
    ...     hinge.is_patched()
    True
    >>> hinge.is_patched()
    False
    """
    return bool(_REPLACED)


def patch(*, stacklevel: int = 2) -> None:
    """Put Hinge's estimators in the place of scikit-learn's support vector machines, until `unpatch`.

    Replaced are the classes in `sklearn.svm`, in its private modules, and under whatever name a module that is
    loaded already has imported them; a line of the logger ``"hinge"`` (level INFO) tells which and where. Classes
    that are derived from them afterwards are derived from Hinge's. Those that exist already stay scikit-learn's,
    and a warning names them: import their modules after patching.

    While patched, ``isinstance(machine, sklearn.svm.SVC)`` holds for Hinge's and for scikit-learn's own machines,
    and pickles of the latter load as what they were. Processes that are started later are not patched; Hinge's
    estimators can be sent to them all the same.

    A second call changes nothing, and says so.

    Examples
    --------
    >>> import hinge
    >>> hinge.patch()
    >>> from sklearn.svm import SVC
    >>> SVC is hinge.SVC, hinge.is_patched()
    (True, True)
    >>> hinge.unpatch()
    >>> hinge.is_patched()
    False
    """
    with _LOCK:
        if is_patched():
            _LOGGER.warning("hinge.patch: scikit-learn is patched already; nothing was changed")
            return
        pairs, missing = _pairs()
        for ours, original in pairs.items():
            STANDING_FOR[ours] = original
            copyreg.pickle(original, reduce_by_name)  # type: ignore[arg-type]
        ours_of = {original: ours for ours, original in pairs.items()}
        _REPLACED.extend(_bindings(ours_of))
        for binding in _REPLACED:
            setattr(binding.module, binding.name, ours_of[binding.value])
        _LOGGER.info("hinge.patch: Hinge takes the place of scikit-learn's %s", _summary(_REPLACED))
    if missing:
        warnings.warn(
            f"hinge.patch: scikit-learn {sklearn.__version__} has no {' and no '.join(missing)} in sklearn.svm; "
            "the others were replaced",
            stacklevel=stacklevel,
        )
    if derived := _derived(ours_of):
        warnings.warn(
            f"hinge.patch: {', '.join(derived)} existed already and stay with scikit-learn's classes. To have "
            "them derived from Hinge's, call hinge.patch() before their modules are imported",
            stacklevel=stacklevel,
        )


def unpatch() -> None:
    """Give scikit-learn's classes their places back.

    Modules that were imported while patched keep Hinge's classes, and so do classes that were derived from them.
    Without a patch it changes nothing, and says so.

    Examples
    --------
    >>> import hinge, sklearn.svm
    >>> hinge.patch()
    >>> hinge.unpatch()
    >>> sklearn.svm.SVC.__module__
    'sklearn.svm._classes'
    """
    with _LOCK:
        if not is_patched():
            _LOGGER.warning("hinge.unpatch: scikit-learn is not patched; nothing was changed")
            return
        for module, name, original in _REPLACED:
            if (
                STANDING_FOR.get(vars(module).get(name, type(None))) is original
            ):  # not what somebody has put there since
                setattr(module, name, original)
        _LOGGER.info("hinge.unpatch: scikit-learn has its classes back: %s", _summary(_REPLACED))
        for original in STANDING_FOR.values():
            copyreg.dispatch_table.pop(original, None)
        STANDING_FOR.clear()
        _REPLACED.clear()


@contextmanager
def patched() -> Iterator[None]:
    """Patch while a ``with`` statement lasts; within a patch it changes nothing.

    Examples
    --------
    >>> import hinge
    >>> with hinge.patched():
    ...     from sklearn.svm import OneClassSVM
    >>> OneClassSVM is hinge.OneClassSVM, hinge.is_patched()
    (True, False)
    """
    if is_patched():
        yield
        return
    try:
        patch(stacklevel=4)  # whose warnings may be errors
        yield
    finally:
        unpatch()


# Machines that scikit-learn has never had.
_ONLY_OURS = ("RankSVM", "SVDD", "TransductiveSVC")


def _pairs() -> tuple[dict[type, type], list[str]]:
    """Return our classes with scikit-learn's of the same name, and names that scikit-learn does not have."""
    ours = {name: getattr(estimators, name) for name in estimators.__all__}
    ours = {name: value for name, value in ours.items() if isclass(value) and name not in _ONLY_OURS}
    theirs = originals()
    return {ours[name]: theirs[name] for name in ours if name in theirs}, sorted(ours.keys() - theirs.keys())


def _bindings(classes: Mapping[type, type]) -> list[_Binding]:
    """Find all names of loaded modules that hold one of these classes, but for those of Hinge itself."""
    found = []
    for title, module in list(sys.modules.items()):
        if not isinstance(module, ModuleType) or title.split(".")[0] == "hinge":
            continue
        names = object.__getattribute__(module, "__dict__")  # which a lazy module has without being loaded
        held = [(name, value) for name, value in list(names.items()) if isinstance(value, type)]
        found += [_Binding(module, name, value) for name, value in held if any(value is one for one in classes)]
    return list(dict.fromkeys(found))


def _derived(classes: Mapping[type, type]) -> list[str]:
    """Name the classes that are derived from these."""
    names, found = set(), list(classes)
    while found:
        below: list[type] = type.__subclasses__(found.pop())
        found += below
        names |= {f"{kind.__module__}.{kind.__qualname__}" for kind in below}
    return sorted(names)


def _summary(bindings: list[_Binding]) -> str:
    by_module: dict[str, list[str]] = {}
    for binding in bindings:
        by_module.setdefault(binding.module.__name__, []).append(str(binding))
    return "; ".join(f"{', '.join(names)} in {module}" for module, names in by_module.items())
