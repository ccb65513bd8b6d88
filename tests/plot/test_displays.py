"""Pictures of machines: what they show is what the machines say, and nothing is clipped or covered."""

import subprocess
import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import sklearn.svm
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from sklearn.datasets import load_iris, make_blobs, make_moons
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hinge import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from hinge.plot import Calibration, Convergence, DecisionBoundary, Margins, Path, RegressionTube
from hinge.plot.page import machine_rows
from hinge.plot.subjects import Subject
from hinge.selection import regularisation_path
from strategies import NAMED

MOONS = make_moons(120, noise=0.25, random_state=0)
IRIS = load_iris(as_frame=True)
NAMES = IRIS.target_names[IRIS.target]
LINE = np.linspace(0, 6, 60)[:, None]
WAVE = np.sin(LINE[:, 0]) + 0.1 * np.cos(37 * LINE[:, 0])


def labels(display):
    return display.ax_.get_legend_handles_labels()[1]


def everything_is_inside(display):
    """Whether texts, legend included, lie within the figure and the legend beside the data."""
    figure = display.figure_
    figure.canvas.draw()
    renderer, box = figure.canvas.get_renderer(), figure.bbox
    tight = display.ax_.get_tightbbox(renderer)
    assert box.x0 - 1 <= tight.x0
    assert tight.x1 <= box.x1 + 1
    assert box.y0 - 1 <= tight.y0
    assert tight.y1 <= box.y1 + 1
    legend = display.ax_.get_legend()
    if legend is not None:
        assert legend.get_window_extent().x0 >= display.ax_.get_window_extent().x1


# ---------------------------------------------------------------------- boundaries


def test_two_classes_have_boundary_margins_and_support_vectors():
    X, y = MOONS
    machine = SVC(C=5, gamma=1.0).fit(X, y)
    display = DecisionBoundary.from_estimator(machine, X, y)
    grid = np.column_stack([display.xx.ravel(), display.yy.ravel()])
    assert display.response.ravel() == pytest.approx(machine.decision_function(grid))
    assert labels(display) == ["boundary", "margin", "0 (60)", "1 (60)", "support vector (size: α)"]
    rings = display.ax_.collections[-1]
    assert len(rings.get_offsets()) == len(machine.support_)
    by_alpha = np.argsort(display.strengths[display.strengths > 0])
    assert (np.diff(rings.get_sizes()[by_alpha]) >= 0).all()
    assert "C = 5" in display.ax_.get_title(loc="left")
    everything_is_inside(display)


def test_many_classes_many_features_in_a_pipeline():
    machine = make_pipeline(StandardScaler(), SVC()).fit(IRIS.data, NAMES)
    wanted = ("petal length (cm)", 3)
    display = DecisionBoundary.from_estimator(machine, IRIS.data, NAMES, features=wanted)
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("petal length (cm)", "petal width (cm)")
    assert "other 2 features at the median" in display.ax_.get_title(loc="left")
    row = IRIS.data.median().to_frame().T
    row["petal length (cm)"], row["petal width (cm)"] = display.xx[40, 90], display.yy[40, 90]
    assert display.classes[int(display.response[40, 90])] == machine.predict(row)[0]
    everything_is_inside(display)


def test_more_classes_than_a_legend_holds():
    X, y = make_blobs(300, centers=20, random_state=0)
    display = DecisionBoundary.from_estimator(SVC().fit(X, y), X, y, grid_resolution=60)
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert len(texts) == 13
    assert "more" in texts[-1]


@pytest.mark.parametrize("make", [sklearn.svm.SVC, sklearn.svm.NuSVC, NuSVC])
def test_others_machines_are_drawn_too(make):
    X, y = MOONS
    display = DecisionBoundary.from_estimator(make().fit(X, y), X, y, grid_resolution=40)
    assert display.strengths is not None


def test_one_class_search_and_new_samples():
    X, y = MOONS
    display = DecisionBoundary.from_estimator(OneClassSVM(nu=0.1).fit(X), X)
    assert labels(display) == ["boundary", "sample (120)", "support vector (size: α)"]
    search = GridSearchCV(SVC(), {"C": [1, 2]}).fit(X, y)
    fresh = DecisionBoundary.from_estimator(search, X[:50], y[:50], grid_resolution=30)
    assert fresh.strengths is None  # these are not the samples that it was trained on


def test_axes_of_ones_own_are_used():
    X, y = MOONS
    ax = Figure().add_subplot()
    display = DecisionBoundary.from_estimator(SVC().fit(X, y), X, y, ax=ax, grid_resolution=30)
    assert display.ax_ is ax
    assert display.figure_ is ax.figure


def test_boundaries_that_cannot_be_drawn():
    X, y = MOONS
    machine = SVC().fit(X, y)
    with pytest.raises(ValueError, match="two different features"):
        DecisionBoundary.from_estimator(machine, X, y, features=(1, 1))
    with pytest.raises(ValueError, match="no feature 'height'"):
        DecisionBoundary.from_estimator(machine, X, y, features=(0, "height"))
    with pytest.raises(ValueError, match="label 7, which the machine does not know"):
        DecisionBoundary.from_estimator(machine, X, np.where(y == 1, 7, 0))
    with pytest.raises(TypeError, match="RegressionTube"):
        DecisionBoundary.from_estimator(SVR().fit(X, y), X, y)
    with pytest.raises(TypeError, match="support vector machine, got StandardScaler"):
        DecisionBoundary.from_estimator(StandardScaler().fit(X), X, y)


# ---------------------------------------------------------------------- the others


def test_a_tube_has_the_width_that_the_machine_chose():
    machine = NuSVR(C=5.0, nu=0.4, tol=1e-6).fit(LINE, WAVE)
    display = RegressionTube.from_estimator(machine, LINE, WAVE)
    outside = np.abs(WAVE - machine.predict(LINE)) > display.half_width + 1e-4
    assert outside.mean() <= 0.4
    assert RegressionTube.from_estimator(SVR(epsilon=0.3).fit(LINE, WAVE), LINE, WAVE).half_width == 0.3
    everything_is_inside(display)
    with pytest.raises(TypeError, match="belongs to a regression"):
        RegressionTube.from_estimator(SVC().fit(*MOONS), *MOONS)


def test_several_features_are_drawn_against_the_prediction():
    X, y = IRIS.data.iloc[:, :3], IRIS.data.iloc[:, 3]
    machine = SVR().fit(X, y)
    display = RegressionTube.from_estimator(machine, X, y)
    assert display.x == pytest.approx(machine.predict(X))
    assert display.ax_.get_xlabel() == "predicted"


def test_convergence_shows_the_trace():
    X, y = MOONS
    machine = SVC(trace=True).fit(X, y)
    display = Convergence.from_estimator(machine, work="iterations")
    curve = display.ax_.lines[0]
    assert curve.get_xdata().tolist() == machine.report_.trace.iterations.tolist()
    assert labels(display) == ["violation", "duality gap", "tolerance 0.001"]
    many = Convergence.from_estimator(SVC(trace=True).fit(IRIS.data, NAMES))
    assert labels(many)[0] == "setosa against versicolor"
    everything_is_inside(many)
    with pytest.raises(ValueError, match="fit with trace=True"):
        Convergence.from_estimator(SVC().fit(X, y))
    with pytest.raises(ValueError, match="work is one of"):
        display.plot(work="hours")


def test_a_path_shows_every_machine():
    X, y = MOONS
    machines = regularisation_path(SVC(kernel="linear"), X, y, [10.0, 0.1, 1.0])
    display = Path.from_estimators(machines)
    assert display.costs.tolist() == [0.1, 1.0, 10.0]
    assert display.curves["all support vectors"][0] == machines[1].report_.n_support
    weights = Path.from_estimators(machines, quantity="weights").curves
    assert weights["feature 0"][-1] == pytest.approx(machines[0].coef_[0, 0])
    scores = Path.from_estimators(machines, X, y, quantity="score").curves[""]
    assert scores[-1] == machines[0].score(X, y)
    with pytest.raises(ValueError, match="pass X and y"):
        Path.from_estimators(machines, quantity="score")
    with pytest.raises(ValueError, match="quantity is"):
        Path.from_estimators(machines, quantity="colour")
    with pytest.raises(ValueError, match="no machine"):
        Path.from_estimators([])


@pytest.mark.parametrize("make", [SVC, sklearn.svm.SVC, lambda: SVC(multi_class="ovr")])
def test_margins_below_zero_are_the_errors(make):
    machine = make().fit(IRIS.data, NAMES)
    display = Margins.from_estimator(machine, IRIS.data, NAMES)
    if getattr(machine, "multi_class", "ovo") == "ovo":
        wrong = machine.predict(IRIS.data) != NAMES
        assert (display.values[wrong] < 0).all()  # who loses a vote loses a pair
    assert sum(len(values) for values in display.groups.values()) == len(NAMES)
    everything_is_inside(display)


def test_margins_of_two_classes_one_class_and_a_regression():
    X, y = MOONS
    machine = SVC().fit(X, y)
    assert (Margins.from_estimator(machine, X, y).values < 0).mean() == pytest.approx(1 - machine.score(X, y))
    one = OneClassSVM(nu=0.2).fit(X)
    assert Margins.from_estimator(one, X).values == pytest.approx(one.decision_function(X))
    errors = Margins.from_estimator(SVR().fit(LINE, WAVE), LINE, WAVE)
    assert errors.ax_.get_xlabel() == "error (observed − predicted)"
    with pytest.raises(ValueError, match="pass y"):
        Margins.from_estimator(machine, X)


def test_calibration_is_the_share_that_came_true():
    random = np.random.default_rng(0)
    foretold = random.uniform(size=20000)
    happened = random.uniform(size=20000) < foretold
    curve = Calibration.from_predictions(happened, foretold).curves["True"]
    assert curve.happened == pytest.approx(curve.foretold, abs=0.03)
    assert curve.brier == pytest.approx(1 / 6, abs=0.01)
    vain = Calibration.from_predictions(random.uniform(size=20000) < 0.5, foretold).curves["True"]
    assert vain.happened == pytest.approx(0.5 * np.ones(10), abs=0.05)


def test_calibration_of_many_classes_and_what_is_refused():
    machine = SVC(probability=True, random_state=0).fit(IRIS.data, NAMES)
    display = Calibration.from_estimator(machine, IRIS.data, NAMES)
    assert list(display.curves) == list(machine.classes_)
    everything_is_inside(display)
    digits = np.arange(200) % 10
    many = Calibration.from_predictions(digits, np.full((200, 10), 0.1))
    assert list(many.curves) == ["predicted class"]
    with pytest.raises(TypeError, match="probability=True"):
        Calibration.from_estimator(SVC().fit(*MOONS), *MOONS)
    with pytest.raises(ValueError, match="between 0 and 1"):
        Calibration.from_predictions([0, 1], [0.5, 1.5])
    with pytest.raises(ValueError, match="but probabilities of"):
        Calibration.from_predictions([0, 1, 2], np.full((3, 2), 0.5))


def test_frames_of_pandas_lead_to_no_warning():
    frame = pd.DataFrame(MOONS[0], columns=["wide", "high"])
    display = DecisionBoundary.from_estimator(SVC().fit(frame, MOONS[1]), frame, MOONS[1], grid_resolution=30)
    assert display.names == ("wide", "high")


def test_matplotlib_is_imported_when_something_is_drawn():
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "import hinge.plot\n"
        "try: hinge.plot.Calibration.from_predictions([0, 1], [0.1, 0.9])\n"
        "except ModuleNotFoundError as error: print(error)"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert told.strip() == "plots need matplotlib: pip install 'hinge-svm[plot]'"


@pytest.mark.parametrize("style", ["default", "dark_background"])
def test_lines_are_seen_on_light_and_dark_pages(style):
    X, y = make_moons(60, noise=0.2, random_state=0)
    with plt.style.context(style):
        ax = DecisionBoundary.from_estimator(SVC(C=10, gamma=1.0).fit(X, y), X, y).ax_
        background = np.array(to_rgb(ax.get_facecolor()))
        boundary = next(line for line in ax.get_lines() if line.get_label() == "boundary")
        rings = next(marks for marks in ax.collections if str(marks.get_label()).startswith("support vector"))
        for colour in (boundary.get_color(), rings.get_edgecolor()[0, :3]):
            assert np.abs(np.array(to_rgb(colour)) - background).mean() > 0.5
    plt.close("all")


@pytest.mark.parametrize("kernel", NAMED)
def test_pages_name_the_parameters_that_a_kernel_uses(kernel):
    machine = SVC(kernel=kernel, gamma=0.25).fit([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0]], [0, 1, 1])
    shown = dict(machine_rows(machine))["kernel"]
    assert all((name in shown) == (name in machine._model.kernel.uses) for name in ("gamma", "coef0", "degree"))
    assert ("γ = 0.25" in Subject(machine, machine).title) == ("gamma" in machine._model.kernel.uses)
