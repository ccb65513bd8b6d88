"""The tree is what ARCHITECTURE.md says it is, and imports go the ways its table allows."""

import ast
import importlib
import itertools
import re
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file

from hinge import SVC
from hinge.cli import main
from hinge.selection import GridSearch

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
FREE = {"arrays", "_version"}  # everybody may import these


def section(title: str) -> str:
    return PAGE.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


def placed() -> set[str]:
    """Modules that the page's tree names, with dots."""
    folder, found = "", set()
    for line in section("The tree").split("```")[1].strip("\n").split("\n"):
        words = line.split()
        if words[0].endswith("/"):
            folder = words.pop(0).removeprefix("hinge/").replace("/", ".")
        found |= {f"hinge.{folder}{word}" for word in words}
    return found


def allowed() -> dict[str, set[str]]:
    """The parts, and what each may import."""
    rows = re.findall(r"^\| `(\w+)` \|([^|]*)\|", section("Who may import whom"), re.MULTILINE)
    return {part: set(re.findall(r"`(\w+)`", others)) for part, others in rows}


def modules(source: Path) -> dict[str, Path]:
    names = {}
    for path in (source / "hinge").rglob("*.py"):
        parts = path.relative_to(source).with_suffix("").parts
        names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return names


def imports(name: str, path: Path, known: dict[str, Path]) -> Iterator[str]:
    """Modules of the library that a module names in an import, wherever in the file that stands."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "hinge")
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            if base.split(".")[0] == "hinge":
                for alias in node.names:
                    yield f"{base}.{alias.name}" if f"{base}.{alias.name}" in known else base


def graph(source: Path) -> dict[str, set[str]]:
    known = modules(source)
    return {name: set(imports(name, path, known)) - {name} for name, path in known.items()}


def part_of(name: str) -> str:
    return name.split(".")[1] if "." in name else name


def forbidden(source: Path) -> list[str]:
    """Arrows between parts that the page's table does not have."""
    table = allowed()
    return sorted(
        f"{name} -> {other}"
        for name, others in graph(source).items()
        for other in others
        if part_of(other) not in {part_of(name), *FREE, *table.get(part_of(name), ())}
    )


def cycles(arrows: dict[str, set[str]]) -> list[str]:
    """Modules that import each other: what is left without those at either end of all arrows."""
    left = dict(arrows)
    while ends := [
        name
        for name, others in left.items()
        if not others & left.keys() or not any(name in others for others in left.values())
    ]:
        for name in ends:
            del left[name]
    return sorted(left)


def test_every_module_has_its_place_on_the_page():
    real = {name for name, path in modules(ROOT / "src").items() if path.name != "__init__.py"}
    assert placed() == real


def test_the_table_knows_every_part():
    parts = {part_of(name) for name in modules(ROOT / "src")}
    assert allowed().keys() | FREE == parts
    assert all(others <= parts for others in allowed().values())


@pytest.mark.parametrize("name", [name for name in modules(ROOT / "src") if not name.endswith("__main__")])
def test_every_module_can_be_imported(name):
    importlib.import_module(name)


def test_imports_go_the_ways_the_page_allows():
    assert forbidden(ROOT / "src") == []


def test_no_module_imports_itself_by_a_detour():
    assert cycles(graph(ROOT / "src")) == []


def test_the_top_of_the_library_stays_small():
    assert len(list((ROOT / "src/hinge").glob("*.py"))) <= 8


@pytest.mark.parametrize(
    "statement",
    [
        "from hinge.training.course import Course",
        "import hinge.estimators",
        "from hinge.selection import chain",
        "def later():\n    from hinge.io import load",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from hinge.report import Report",
    ],
)
def test_an_arrow_against_the_page_is_found(tmp_path, statement):
    for name, path in modules(ROOT / "src").items():
        copy = tmp_path / path.relative_to(ROOT / "src")
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(path.read_text(encoding="utf-8") + (statement if name == "hinge.data.storage" else ""))
    assert forbidden(tmp_path)


def test_a_cycle_is_found():
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == ["b", "c"]
    assert cycles({"a": {"b"}, "b": {"c"}, "c": set()}) == []


def walks() -> dict[str, list[tuple[str, list[str]]]]:
    """The page's walks by their titles: each file that is opened, and what is looked at in it."""
    found: dict[str, list[tuple[str, list[str]]]] = {}
    for title, text in re.findall(
        r"^\*\*`(.+?)`\*\*(.*?)(?=^\*\*`|\Z)", section("Walks"), re.MULTILINE | re.DOTALL
    ):
        found[title] = []
        for word in re.findall(r"`([^`]+)`", text):
            if word.endswith(".py"):
                found[title].append((word, []))
            elif re.fullmatch(r"[A-Za-z_][\w.]*", word) and found[title]:
                found[title][-1][1].append(word)
    return found


def defined(text: str) -> set[str]:
    """Functions and classes of a module, methods with and without their class."""
    names = set()
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
            inner = [part.name for part in node.body if isinstance(part, ast.FunctionDef)]
            names |= {*inner, *(f"{node.name}.{name}" for name in inner)}
    return names


@pytest.mark.parametrize("title", walks())
def test_whatever_a_walk_names_is_there(title):
    for file, names in walks()[title]:
        known = defined((ROOT / "src/hinge" / file).read_text(encoding="utf-8"))
        assert set(names) <= known, f"{file} has no {sorted(set(names) - known)}"


def moons(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Samples of two classes that an RBF machine takes some work to part."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4))
    return X, np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=n) > 0, 1, -1)


def fit(folder: Path) -> Callable[[], object]:
    X, y = moons(5000)
    return lambda: SVC(n_jobs=1).fit(X, y)


def add(folder: Path) -> Callable[[], object]:
    X, y = moons(4000)
    machine = SVC(n_jobs=1, C=10).fit(X[:-50], y[:-50])
    return lambda: machine.add(X[-50:], -y[-50:])  # many enough to make residuals vague


def compress(folder: Path) -> Callable[[], object]:
    machine = SVC(n_jobs=1).fit(*moons(400))
    return lambda: machine.compressed(error=0.1)


def predict(folder: Path) -> Callable[[], object]:
    X, y = moons(1000)
    machine = SVC(n_jobs=1).fit(X, y * (1 + (X[:, 2] > 0)))  # four classes: votes are counted
    return lambda: machine.predict(X)


def train(folder: Path) -> Callable[[], object]:
    dump_svmlight_file(*moons(200), str(folder / "data"), zero_based=False)
    return lambda: main(["train", "-q", "-b", "1", str(folder / "data"), str(folder / "model")])


def search(folder: Path) -> Callable[[], object]:
    X, y = moons(200)
    return lambda: GridSearch(SVC(n_jobs=1), {"C": [1.0, 10.0]}, n_jobs=1, cv=3).fit(X, y)


# What sets out on each walk of the page.
GOES = {
    "SVC().fit(X, y)": fit,
    "machine.add(X, y)": add,
    "machine.compressed(error=…)": compress,
    "machine.predict(X)": predict,
    "hinge train data model": train,
    "GridSearch(SVC(), grid).fit(X, y)": search,
}


def calls(work: Callable[[], object]) -> list[tuple[str, str]]:
    """File and function of what some work calls of the library, in order; methods with and without their class."""
    code = (ROOT / "src/hinge").as_posix() + "/"
    called: dict[tuple[str, str], None] = {}

    def note(frame, event, _):
        file = frame.f_code.co_filename.replace("\\", "/")
        if event == "call" and file.startswith(code):
            name = frame.f_code.co_qualname
            for known_as in (name, name.rpartition(".")[2]):
                called.setdefault((file.removeprefix(code), known_as))

    sys.setprofile(note)
    threading.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return list(called)


@pytest.mark.parametrize("title", walks())
def test_a_walk_opens_few_files_and_each_once(title):
    files = [file for file, _ in walks()[title]]
    assert len(set(files)) == len(files) <= 12


@pytest.mark.parametrize("title", walks())
def test_a_walk_is_what_runs(tmp_path, title):
    """Whatever a walk names is called; what is first in each file, in the walk's order."""
    walk = walks()[title]
    called = calls(GOES[title](tmp_path))
    missing = {(file, name) for file, names in walk for name in names} - set(called)
    assert not missing
    entries = [(file, names[0]) for file, names in walk if names]
    assert [call for call in called if call in entries] == entries


# Functions with more than sixty lines of code or more than seven parameters, and why.
_API = "scikit-learn's parameters, each by its name"
LARGE = {
    "estimators.linear.LinearSVC.__init__": _API,
    "selection.search.GridSearch.__init__": _API,
    "selection.validation.cross_validate": _API,
    "many.evaluation.cross_validate_many": _API,
    "many.evaluation.fit_many": _API,
}


def functions(node: ast.AST, name: str) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """All functions below a node, with the names of the classes and functions that they stand in."""
    for part in ast.iter_child_nodes(node):
        is_function = isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef)
        within = f"{name}.{part.name}" if is_function or isinstance(part, ast.ClassDef) else name
        if is_function:
            yield within, part
        yield from functions(part, within)


def large(name: str, text: str) -> set[str]:
    """Functions of a module that are longer than a screen, head included, or take more than seven parameters."""
    lines, found = text.splitlines(), set()
    for place, node in functions(ast.parse(text), name.removeprefix("hinge.")):
        head, body = (
            lines[node.lineno - 1 : node.body[0].lineno - 1],
            lines[node.body[0].lineno - 1 : node.end_lineno],
        )
        if ast.get_docstring(node):
            body = lines[node.body[0].end_lineno : node.end_lineno]
        code = [line for line in head + body if line.split("#")[0].strip()]
        every = node.args.posonlyargs + node.args.args + node.args.kwonlyargs
        if len(code) > 60 or len([a for a in every if a.arg not in ("self", "cls")]) > 7:
            found.add(place)
    return found


def test_functions_fit_a_screen_and_take_few_parameters():
    real = modules(ROOT / "src").items()
    found = set().union(*(large(name, path.read_text(encoding="utf-8")) for name, path in real))
    assert found == LARGE.keys()


def test_a_large_function_is_found():
    assert large("hinge.a", "def f(a, b, c, d, e, f, g, h): ...") == {"a.f"}
    assert large("hinge.a", "class A:\n    def f():\n        'What.'\n" + "        x = 1\n" * 60) == {"a.A.f"}
    assert large("hinge.a", "def f(self, b, c, d, e, f, g, h):\n" + "    x = 1\n" * 59 + "    # why\n") == set()


# Numeric constants of modules: parts where they may stand, and how many at the most.
COUNTED, MOST_CONSTANTS = ("kernel", "data", "solvers", "training", "selection"), 130


def is_number(node: ast.expr) -> bool:
    """Whether an expression is written with a number of its own: ``-1``, ``2.0**-53``, ``4 * eps``."""
    match node:
        case ast.Constant(value=value):
            return isinstance(value, int | float) and not isinstance(value, bool)
        case ast.UnaryOp(operand=operand):
            return is_number(operand)
        case ast.BinOp(left=left, right=right):
            return is_number(left) or is_number(right)
        case ast.Call(func=ast.Name(id="range")):  # names for places 0, 1, 2, …
            return False
        case ast.Call(args=parts) | ast.Tuple(elts=parts):
            return any(map(is_number, parts))
    return False


def constants(text: str) -> list[str]:
    """Names that a module binds to numbers. Fields of dataclasses have their documentation and do not count."""
    found = []
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None and is_number(node.value):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found += [name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]
    return found


# Polynomials that approximate e^x: their coefficients are no choice of anybody.
COEFFICIENTS = "kernel/exponential.py"


def nameless(text: str) -> list[float]:
    """Numbers inside functions that say nothing by themselves, as 0.5 or 4.0 do."""
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef | ast.Lambda)]
    numbers = {
        (node.lineno, node.col_offset): node.value
        for function in functions
        for node in ast.walk(function)
        if isinstance(node, ast.Constant) and isinstance(node.value, float)
    }
    return [number for number in numbers.values() if not (number * 4).is_integer() or abs(number) >= 1000]


def counted_files() -> list[Path]:
    return [path for part in COUNTED for path in sorted((ROOT / "src/hinge" / part).rglob("*.py"))]


def test_few_numbers_are_constants():
    """Those without a name count, too: a number is not gone because it stands inside a function."""
    texts = {path: path.read_text(encoding="utf-8") for path in counted_files()}
    named = sum(len(constants(text)) for text in texts.values())
    unnamed = {path: nameless(text) for path, text in texts.items() if not path.as_posix().endswith(COEFFICIENTS)}
    assert named + sum(map(len, unnamed.values())) <= MOST_CONSTANTS, [path for path in unnamed if unnamed[path]]


def test_every_number_has_its_reason():
    """A comment stands above it, behind it, or above others that stand right above it."""
    for path in counted_files():
        text = path.read_text(encoding="utf-8")
        lines = ["", *text.splitlines()]
        for node in ast.parse(text).body:
            if isinstance(node, ast.Assign) and is_number(node.value):
                number = node.lineno
                while "#" not in lines[number] and lines[number].strip():
                    number -= 1
                assert "#" in lines[number], f"{path.relative_to(ROOT)}:{node.lineno} has no reason"


def test_every_decision_of_a_method_has_its_reason_below_it():
    text = (ROOT / "src/hinge/solvers/policies.py").read_text(encoding="utf-8")
    bodies = [node.body for node in ast.parse(text).body if isinstance(node, ast.ClassDef)]
    fields = [pair for body in bodies for pair in itertools.pairwise(body) if isinstance(pair[0], ast.AnnAssign)]
    assert len(fields) > 40
    for field, reason in fields:
        has_one = isinstance(reason, ast.Expr) and isinstance(reason.value, ast.Constant)
        assert has_one, f"{ast.unparse(field)} has no reason"


def test_a_constant_is_found():
    text = "A = 1\nB, C = 2.0, -1e-3\nD = np.float32(0.5)\nE = 2.0**-53\nF: float = 4 * EPS\n"
    assert constants(text) == ["A", "B", "C", "D", "E", "F"]
    assert nameless("def f(x=4.0, y=1e-3):\n    return [0.5 * x, (lambda z: 0.9 * z)(y)]\nA = 1e-9\n") == [
        1e-3,
        0.9,
    ]
    assert constants("A, B = range(2)\nC = True\nD = 'x'\nE = np.array([1])\nclass F:\n    g: int = 3\n") == []
