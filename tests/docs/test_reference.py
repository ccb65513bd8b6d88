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
    methods = [member for key, member in vars(value).items() if key[0] != "_"] if isinstance(value, type) else []
    texts = [getattr(part, "__doc__", None) or "" for part in (value, *methods)]
    assert any(">>> " in text for text in texts), f"{module}.{name} has no example"


def test_the_index_of_errors_names_messages_that_exist():
    import re

    import hinge

    page = (DOCS / "reference" / "errors.md").read_text(encoding="utf-8")
    named = re.findall(r"^\| `([^`]+)` \|", page, flags=re.MULTILINE)
    assert len(named) > 15
    source = "".join(path.read_text(encoding="utf-8") for path in Path(hinge.__file__).parent.rglob("*.py"))
    source = re.sub(r'"\s+f?"', "", source)  # messages stand on several lines
    assert [message for message in named if message not in source] == []
