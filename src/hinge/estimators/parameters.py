"""Constructors out of the parameters that classes declare.

scikit-learn asks of a constructor that it names every parameter and stores it as it came. An estimator shares most
of its parameters with others; so each class declares what it adds, with type and default, as a dataclass does,
and `parametrised` makes the constructor.
"""

from __future__ import annotations

import inspect
from inspect import Parameter, Signature
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T", bound=type)


@dataclass_transform(kw_only_default=True, eq_default=False)
def parametrised(cls: T) -> T:
    """Give a class a constructor with the parameters that it and its bases declare.

    Parameters
    ----------
    cls : type
        ``name: type = default`` in its body declares a parameter; ``name = value``, where a base declares it,
        takes it away and fixes its value.

    Returns
    -------
    type
        The same class. As before, only instances have the parameters as attributes.
    """
    annotations = {name: kind for name, kind in inspect.get_annotations(cls).items() if not name.startswith("_")}
    declared = {
        name: Parameter(name, Parameter.KEYWORD_ONLY, default=vars(cls)[name], annotation=kind)
        for name, kind in annotations.items()
    }
    for name in declared:
        delattr(cls, name)
    cls._declared = declared  # type: ignore[attr-defined]
    parameters: dict[str, Parameter] = {}
    fixed: set[str] = set()
    for base in cls.__mro__:
        for name, parameter in vars(base).get("_declared", {}).items():
            if name not in fixed:
                parameters.setdefault(name, parameter)
        fixed |= vars(base).keys()
    defaults = {name: parameter.default for name, parameter in parameters.items()}

    def __init__(self: Any, **given: Any) -> None:  # noqa: N807
        for name in given:
            if name not in defaults:
                raise TypeError(f"{cls.__name__}.__init__() got an unexpected keyword argument {name!r}")
        for name, value in (defaults | given).items():
            setattr(self, name, value)

    __init__.__qualname__ = f"{cls.__qualname__}.__init__"
    own = Parameter("self", Parameter.POSITIONAL_OR_KEYWORD)
    __init__.__signature__ = Signature([own, *parameters.values()], return_annotation=None)  # type: ignore[attr-defined]
    cls.__init__ = __init__  # type: ignore[misc]
    return cls
