"""The toy: a page on this computer where points are drawn with the mouse and machines retrain while they move.

``hinge toy`` on the command line, `serve` in Python, and in a notebook ``hinge.toy.Toy()`` (extra ``notebook``).
"""

from __future__ import annotations

from typing import Any

from hinge.toy.server import serve

__all__ = ["Toy", "serve"]


def __getattr__(name: str) -> Any:
    if name == "Toy":  # made when it is asked for: whoever has no notebook needs no widgets
        from hinge.toy.widget import toy_class

        value = globals()["Toy"] = toy_class()
        return value
    raise AttributeError(f"module 'hinge.toy' has no attribute {name!r}")
