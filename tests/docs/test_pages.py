"""Every block of code on every page runs, in the order of the page, and shows what the page says it shows."""

import contextvars
import doctest
import os
import re
import subprocess
import sys
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
MADE = ("docs/_build/", "docs/gallery/", "docs/reference/api/", "docs/reference/generated/", "docs/laboratory/")

# A fence, with the comment right above it, if any: `<!-- not run: why -->` or `<!-- needs: module -->`.
FENCE = re.compile(
    r"(?:^<!-- (?P<mark>not run|needs|test)(?:: (?P<what>[^\n]*?))? -->\n)?"
    r"^(?P<ticks>```+)(?P<kind>\w+)\n(?P<code>.*?)^(?P=ticks)$",
    re.MULTILINE | re.DOTALL,
)
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class Block(NamedTuple):
    kind: str
    code: str
    line: int
    mark: str
    what: str


def blocks_of(text):
    return [
        Block(
            match["kind"],
            match["code"],
            text.count("\n", 0, match.start("code")),
            match["mark"] or "",
            match["what"] or "",
        )
        for match in FENCE.finditer(text)
        if match["kind"] in ("python", "sh")
    ]


def pages():
    return [page for page in PAGES if not page.relative_to(ROOT).as_posix().startswith(MADE)]


def run_python(block, names, page):
    """Run a block; of one with prompts, compare what is shown."""
    where = f"{page.name}, line {block.line}"
    if ">>> " not in block.code:
        code = compile("\n" * block.line + block.code, str(page), "exec")
        contextvars.Context().run(exec, code, names)  # other tests' client of Dask is not the current one there
        return
    test = doctest.DocTestParser().get_doctest(block.code, names, where, str(page), block.line)
    said = []
    doctest.DocTestRunner(optionflags=OPTIONS, verbose=False).run(test, out=said.append, clear_globs=False)
    names.update(test.globs)
    assert not said, "".join(said)


def run_shell(block, folder):
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block.code],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, f"line {block.line}: {block.code}\n{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names, absent = {"__name__": "__page__"}, []
    for block in blocks_of(page.read_text(encoding="utf-8")):
        if block.mark in ("not run", "test"):  # the latter is the command that runs this
            continue
        if block.mark == "needs" and find_spec(block.what) is None:  # not imported: a block may patch first
            absent.append(block.what)
            continue
        with warnings.catch_warnings():
            if block.mark == "needs":  # what other libraries warn of is theirs
                warnings.simplefilter("ignore")
            if block.kind == "python":
                run_python(block, names, page)
            else:
                run_shell(block, tmp_path)
    if absent:
        pytest.skip(f"blocks that need {', '.join(absent)} did not run; the others did")


def test_blocks_that_are_not_run_say_why():
    reasons = [
        block.what
        for page in pages()
        for block in blocks_of(page.read_text(encoding="utf-8"))
        if block.mark == "not run"
    ]
    assert all(len(reason) > 10 for reason in reasons)


def test_a_wrong_output_is_noticed(tmp_path):
    block = Block("python", ">>> 1 + 1\n3\n", 0, "", "")
    with pytest.raises(AssertionError, match="Expected"):
        run_python(block, {}, tmp_path / "page.md")
