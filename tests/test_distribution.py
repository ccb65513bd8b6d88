"""The name under which Hinge is published, and the extras that messages and pages tell users to install."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PAGES = [
    *(ROOT / "src").rglob("*.py"),
    *(ROOT / "docs").rglob("*.md"),
    *ROOT.glob("*.md"),
    *ROOT.glob("benchmarks/*"),
]

# `pip install NAME[EXTRA]`, quoted or not, and options before the name.
HINT = re.compile(r"""pip install (?:-\w+ )*['"]?(?P<name>[\w.-]+)(?P<extras>\[[^]]*\])?""")


def hints(text):
    """Names and extras that a text tells its reader to install."""
    for match in HINT.finditer(text):
        extras = (match["extras"] or "").strip("[]")
        yield match["name"], {extra.strip() for extra in extras.split(",") if extra.strip()}


def wrong_hints(text):
    """Those that would install another project named hinge, or an extra that this one does not have."""
    known = PROJECT["optional-dependencies"].keys()
    return [
        (name, extras)
        for name, extras in hints(text)
        if name == "hinge" or (name in (PROJECT["name"], ".") and not extras <= known)
    ]


def test_the_name_is_free_on_the_package_index_and_commands_keep_theirs():
    assert PROJECT["name"] == "hinge-svm"  # `hinge` is somebody else's
    assert "hinge" in PROJECT["scripts"]


def test_hints_name_this_distribution_and_extras_that_exist():
    pages = {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in PAGES if path.is_file()
    }
    assert {page: wrong for page, text in pages.items() if (wrong := wrong_hints(text))} == {}
    found = [extra for text in pages.values() for name, extras in hints(text) if name != "ray" for extra in extras]
    assert {"plot", "lab", "cluster", "test"} <= set(found)  # the expression still finds them


@pytest.mark.parametrize(
    "text",
    [
        "pip install hinge",
        "pip install 'hinge[plot]'",
        'pip install "hinge-svm[plots]"',
        "pip install -e '.[tests]'",
    ],
)
def test_a_wrong_hint_is_found(text):
    assert wrong_hints(text)


def test_hooks_run_what_the_tests_begin_with_and_download_nothing():
    hooks = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    entries = re.findall(r"entry: (.*)", hooks)
    command = re.search(r"<!-- test -->\n```sh\n(.*)\n```", (ROOT / "README.md").read_text(encoding="utf-8"))[1]
    checks = [step.removesuffix(" --check") for step in command.split(" && ")[1:-1]]
    assert checks == ["ruff check", "ruff format", "mypy"]
    assert all(any(entry.startswith(check) for entry in entries) for check in checks)
    assert re.findall(r"repo: (.*)", hooks) == ["local"]
