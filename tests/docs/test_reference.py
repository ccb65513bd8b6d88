"""The reference has a page for every public name, and each of these shows how it is used."""

import importlib
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
sys.path.insert(0, str(DOCS))
generated = importlib.import_module("generated")
sys.path.remove(str(DOCS))

NAMES = [(module, name) for module, names in generated.public_names().items() for name in names]


def test_every_public_module_is_listed():
    import hinge

    source = Path(hinge.__file__).parent
    packages = {
        f"hinge.{path.parent.name}" for path in source.glob("*/__init__.py") if "__all__" in path.read_text()
    }
    inner = {
        "hinge.runtime",
        "hinge.data",
        "hinge.kernel",
        "hinge.dual",
        "hinge.solvers",
        "hinge.training",
        "hinge.cli",
    }
    assert packages - inner <= set(generated.MODULES)


@pytest.mark.parametrize(("module", "name"), NAMES, ids=[".".join(pair) for pair in NAMES])
def test_docstrings_show_an_example(module, name):
    value = getattr(importlib.import_module(module), name)
    assert ">>> " in (value.__doc__ or ""), f"{module}.{name} has no example"
