"""The pages keep their word: every row is there, and every test they name exists."""

import re
from pathlib import Path

import pytest

import hinge
from hinge.many import CrossValidated
from hinge.selection import GridSearch

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "what-users-asked.md"

pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="the documentation is not part of an installed package")


def test_every_question_is_answered():
    rows = re.findall(r"^\| (\d+) \|", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert [int(row) for row in rows] == list(range(1, 32))


def test_every_test_that_is_named_exists():
    named = set(re.findall(r"`(test_\w+)`", PAGE.read_text(encoding="utf-8")))
    source = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    existing = set(re.findall(r"^def (test_\w+)", source, flags=re.MULTILINE))
    assert named - existing == set()


@pytest.mark.parametrize("name", ["SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM"])
def test_every_parameter_is_documented(name):
    estimator = getattr(hinge, name)
    parameters = estimator.__doc__.split("Attributes\n")[0]
    missing = [
        key for key in estimator().get_params() if not re.search(rf"^    {key} : ", parameters, re.MULTILINE)
    ]
    assert missing == []
    assert "%(" not in estimator.__doc__


@pytest.mark.parametrize(
    ("estimator", "page"),
    [
        *((getattr(hinge, name)(), f"hinge.{name}") for name in
          ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM", "LinearSVC", "LinearSVR")),
        (GridSearch(hinge.SVC(), {"C": [1]}), "hinge.selection.GridSearch"),
        (CrossValidated(hinge.SVC()), "hinge.many.CrossValidated"),
    ],
)  # fmt: skip
def test_notebooks_link_estimators_to_their_pages(estimator, page):
    link = f"docs/_build/html/reference/api/{page}.html"
    assert estimator._get_doc_link() == link
    html = estimator._repr_html_()
    assert f'href="{link}"' in html
    if "param-doc-link" in html:  # scikit-learn 1.8 and later
        for name in estimator.get_params(deep=False):
            assert f'href="{link}#:~:text={name},-' in html, name


def test_estimators_of_others_are_not_linked_to_our_pages():
    class Own(hinge.SVC):
        pass

    assert Own()._get_doc_link() == ""
