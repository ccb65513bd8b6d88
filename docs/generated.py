"""Pages of the reference that follow from the library: public names, commands, statuses, report fields."""

import inspect
from importlib import import_module
from itertools import pairwise
from pathlib import Path

FOLDER = Path(__file__).parent / "reference" / "generated"

#: Modules whose public names have a page each, with what they are for.
MODULES = {
    "hinge": "Estimators, solvers and certificates",
    "hinge.selection": "Choosing parameters",
    "hinge.dask": "Training on a cluster",
    "hinge.plot": "Pictures",
    "hinge.patch": "Hinge in the place of scikit-learn",
    "hinge.many": "Very many small fits",
    "hinge.io": "Files",
    "hinge.estimators": "Model files of estimators",
    "hinge.lab": "The laboratory",
    "hinge.toy": "The toy",
}


def public_names():
    """Names with a page of their own by module, each at the first module that offers it; no constants."""
    seen, names = set(), {}
    for module_name in MODULES:
        module = import_module(module_name)
        for name in sorted(module.__all__):
            value = getattr(module, name)
            is_ours = getattr(value, "__module__", "").startswith("hinge")  # `l1_min_c` is scikit-learn's
            if is_ours and (inspect.isclass(value) or inspect.isroutine(value)) and id(value) not in seen:
                seen.add(id(value))
                names.setdefault(module_name, []).append(name)
    return names


def api_page():
    """The list of all public names; autosummary makes a page of each."""
    lines = ["# API reference", ""]
    for module, names in public_names().items():
        lines += [f"## {MODULES[module]}: `{module}`", "", "```{eval-rst}", f".. currentmodule:: {module}", ""]
        lines += [".. autosummary::", "   :toctree: ../api", "   :nosignatures:", "", *(f"   {n}" for n in names)]
        lines += ["```", ""]
    return "\n".join(lines)


def commands_page():
    """What every command says of itself."""
    from hinge.cli import tables
    from hinge.cli.options import Command

    commands = [value for value in vars(tables).values() if isinstance(value, Command)]
    lines = [
        "# Commands",
        "",
        "What `hinge COMMAND --help` prints. Options with one letter are LIBSVM's, in its spelling;",
        "[coming from LIBSVM](../../coming-from-libsvm.md) lists the differences.",
        "",
    ]
    for command in commands:
        lines += [f"## hinge {command.name}", "", "```text", command.help_text().rstrip(), "```", ""]
    return "\n".join(lines)


def statuses_page():
    """Every status with its meaning and remedy, then every field of a report."""
    from hinge.report import MESSAGES, Report, Status

    meanings = _docstrings_of_members(Status)
    lines = [
        "# Statuses and report fields",
        "",
        "## How a fit may end",
        "",
        "`report_.status` is one of these.",
        "",
    ]
    lines += ["| status | meaning | what to do |", "|---|---|---|"]
    lines += [f"| `{status}` | {meanings[status.name]} | {MESSAGES[status]} |" for status in Status]
    lines += ["", "[Reading a report](../../how-to/reading-a-report.md) explains causes and remedies one by one."]
    lines += ["", "## What a report tells", "", "```{eval-rst}"]
    attributes = inspect.cleandoc(Report.__doc__ or "").split("Attributes\n----------\n")[1]
    lines += [*_definitions(attributes), "```", ""]
    return "\n".join(lines)


def _docstrings_of_members(enumeration):
    """The strings that stand under the members of an enumeration, by name."""
    import ast
    import textwrap

    body = ast.parse(textwrap.dedent(inspect.getsource(enumeration))).body[0].body
    return {
        node.targets[0].id: after.value.value
        for node, after in pairwise(body)
        if isinstance(node, ast.Assign) and isinstance(after, ast.Expr)
    }


def _definitions(attributes):
    for line in attributes.splitlines():
        name, colon, kind = line.partition(" : ")
        yield f"**{name}** : *{kind}*" if colon and not line.startswith(" ") else line


def write_pages(*_):
    """Write all of them and draw the animation; what has not changed keeps its date and is not built again."""
    import animation

    animation.draw()
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, page in (("api", api_page), ("commands", commands_page), ("statuses", statuses_page)):
        path, text = FOLDER / f"{name}.md", page()
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def skip_foreign(app, what, name, member, skip, options):
    """Leave out methods that a class inherits from elsewhere, and fields, which its docstring tells."""
    function = getattr(member, "fget", None) or getattr(member, "__func__", member)
    is_ours = inspect.isfunction(function) and function.__module__.startswith("hinge.")
    return None if is_ours and not name.startswith("_") else True


def setup(app):
    """Write the pages before Sphinx looks for sources."""
    app.connect("config-inited", write_pages)
    app.connect("autodoc-skip-member", skip_foreign)
    return {"parallel_read_safe": True}
