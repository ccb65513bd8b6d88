"""How scikit-learn's own machines are pickled while their classes are not found under their names.

A pickle refers to a class by name, and refuses one that is not to be found there. So that these pickles are read
by any scikit-learn, with or without Hinge, they look the class up by functions of Python alone.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


class _Module:
    """Becomes the module of that name where it is unpickled."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __reduce__(self) -> tuple[Any, ...]:
        return import_module, (self._name,)


class _NewObject:
    """Makes an object of a class; becomes the class that has its name where it is unpickled."""

    def __init__(self, kind: type) -> None:
        self._kind = kind

    def __call__(self) -> Any:  # by `copy`, which calls without pickling
        return object.__new__(self._kind)

    def __reduce__(self) -> tuple[Any, ...]:
        return getattr, (_Module(self._kind.__module__), self._kind.__qualname__)


def reduce_by_name(machine: Any) -> tuple[Any, ...]:
    """Reduce one of scikit-learn's machines, as `copyreg` asks."""
    return _NewObject(type(machine)), (), machine.__getstate__()
