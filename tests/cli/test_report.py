"""``hinge report`` and ``hinge info``: what they say of models and data, and of files that are wrong."""

import base64
import re

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris, make_moons

from hinge import SVC
from hinge.cli import main
from hinge.io import write_data
from hinge.plot.page import page_of

IRIS = load_iris(return_X_y=True)


def pictures(page):
    return re.findall(r"<img alt='(\w+)' src='data:image/png;base64,([^']+)'", page)


@pytest.fixture
def trained(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def train(X, y, *options):
        write_data("data", X, y)
        assert main(["train", "-q", *options, "data", "model"]) == 0

    return train


def test_a_page_of_two_features(trained, tmp_path, capsys):
    X, y = make_moons(120, noise=0.2, random_state=0)
    trained(X, y, "-c", "7", "-g", "2", "-b", "1")
    assert main(["report", "model", "data", "-o", "page.html"]) == 0
    assert capsys.readouterr().out.strip().endswith("report: page.html")
    page = (tmp_path / "page.html").read_text()
    assert "SVC: rbf, C = 7, γ = 2" in page  # the file does not hold C: it is read off the coefficients
    assert "Proved: optimal for C = 7" in page
    assert [name for name, _ in pictures(page)] == ["Margins", "DecisionBoundary", "Calibration"]
    assert all(base64.b64decode(data).startswith(b"\x89PNG") for _, data in pictures(page))
    assert "http" not in page.replace("http-equiv", "")  # nothing is loaded from elsewhere
    assert re.search(r"Hardest samples</h2>", page)


def test_pages_of_many_classes_regression_and_one_class(trained, tmp_path):
    trained(*IRIS)
    assert main(["report", "model", "data"]) == 0
    page = (tmp_path / "model.html").read_text()
    assert "0 against 1" in page
    assert "class \\ predicted" in page
    X, y = load_diabetes(return_X_y=True)
    trained(X, y, "-s", "3", "-c", "100", "-p", "20")
    assert main(["report", "model", "data"]) == 0
    page = (tmp_path / "model.html").read_text()
    assert "Proved: optimal for C = 100, epsilon = 20" in page
    assert [name for name, _ in pictures(page)] == ["RegressionTube", "Margins"]
    trained(X, y, "-s", "2", "-n", "0.2")
    assert main(["report", "model", "data"]) == 0
    assert "Farthest outside" in (tmp_path / "model.html").read_text()


def test_other_data_than_that_of_the_training_give_no_certificate(trained, tmp_path):
    X, y = make_moons(200, noise=0.2, random_state=0)
    trained(X[:100], y[:100], "-c", "7")
    write_data("test", X[100:], y[100:])
    assert main(["report", "model", "test"]) == 0
    page = (tmp_path / "model.html").read_text()
    assert "Not computed: support vector" in page
    assert "C = " not in page


def test_a_page_knows_the_course_of_a_fit():
    page = page_of(SVC(trace=True).fit(*IRIS), *IRIS, data_name="<iris & co>")
    assert pictures(page)[0][0] == "Convergence"
    assert "&lt;iris &amp; co&gt;" in page


def test_what_goes_wrong_is_said_before_work_begins(trained, capsys, monkeypatch):
    trained(*IRIS)
    for words, message in [
        (["report", "model", "data", "-o", "no/such/page.html"], "cannot write no/such/page.html"),
        (["report", "nowhere", "data"], "can't open model file nowhere"),
        (["report", "data", "data"], "data"),
    ]:
        with pytest.raises(SystemExit) as stop:
            main(words)
        assert stop.value.code == 1
        assert message in capsys.readouterr().err
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(SystemExit):
        main(["report", "model", "data"])
    assert "pip install 'hinge-svm[plot]'" in capsys.readouterr().err


def test_info_of_a_model(trained, capsys):
    trained(*IRIS, "-g", "0.5")
    capsys.readouterr()
    assert main(["info", "model"]) == 0
    told = capsys.readouterr().out
    assert re.search(r"^kernel +rbf, gamma = 0.5$", told, re.MULTILINE)
    assert re.search(r"^classes +3$", told, re.MULTILINE)


def test_info_of_data(tmp_path, capsys):
    X, y = IRIS[0].copy(), IRIS[1]
    write_data(tmp_path / "tame", X, y)
    assert main(["info", str(tmp_path / "tame")]) == 0
    told = capsys.readouterr().out
    assert "3 classes (0: 50, 1: 50, 2: 50)" in told
    assert "hint" not in told
    X[:, 2] *= 1e4
    X[:, 3] = 1.0
    write_data(tmp_path / "wild", X, np.linspace(0, 1, 150))
    assert main(["info", str(tmp_path / "wild")]) == 0
    told = capsys.readouterr().out
    assert "numbers between 0 and 1" in told
    assert "features differ in scale: 3 up to" in told
    assert "1 features have one value" in told
