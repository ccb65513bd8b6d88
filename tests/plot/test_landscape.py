"""Pictures of a search: what is in them, in which files, and what is refused."""

import builtins
import xml.etree.ElementTree as ET
from types import SimpleNamespace

import numpy as np
import pytest

from hinge.plot import Landscape
from hinge.plot.landscape import contour_levels

POINTS = [(2.0**c, 2.0**g) for c in range(-5, 16, 4) for g in range(-15, 4, 3)]


def bowl(points):
    """Scores with one best point."""
    return [84.0 - 0.2 * (np.log2(c) - 7) ** 2 - 0.1 * (np.log2(g) + 6) ** 2 for c, g in points]


def drawn(*arguments, **options):
    return Landscape(*arguments, **options).plot().figure_


def searched(search, **options):
    return Landscape.from_estimator(search, **options).figure_


def star_of(figure):
    (line,) = [line for line in figure.axes[0].lines if line.get_marker() == "*"]
    return line.get_xdata()[0], line.get_ydata()[0]


def test_best_point_is_marked_and_named():
    figure = drawn(POINTS, bowl(POINTS), title="heart")
    axes = figure.axes[0]
    assert star_of(figure) == (7.0, -6.0)
    assert axes.get_title(loc="left") == (
        "heart: best cross-validation accuracy 84 %\nat log₂ C = 7, log₂ γ = −6  (C = 128, γ = 0.015625)"
    )
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("log₂ C", "log₂ γ")
    assert figure.axes[1].get_ylabel() == "cross-validation accuracy (%)"


def test_lines_carry_their_scores():
    figure = drawn(POINTS, bowl(POINTS))
    lines, _ = contour_levels(np.array(bowl(POINTS)))
    labels = {float(text.get_text()) for text in figure.axes[0].texts}
    assert len(lines) >= 4
    assert labels
    assert labels <= set(lines.tolist())


def test_errors_are_best_where_they_are_smallest():
    figure = drawn(POINTS, [100 - score for score in bowl(POINTS)], smaller_is_better=True)
    assert star_of(figure) == (7.0, -6.0)


def test_points_that_form_no_grid_and_scores_that_are_missing():
    scores = bowl(POINTS)
    scores[3] = float("nan")
    figure = drawn(POINTS, scores)
    assert star_of(figure) == (7.0, -6.0)
    assert len(figure.axes[0].collections[-1].get_offsets()) == len(POINTS) - 1


def test_named_best_point_gets_the_star():
    assert star_of(drawn(POINTS, bowl(POINTS), best=0)) == (-5.0, -15.0)


def test_one_parameter_is_a_curve():
    figure = drawn([[1.0], [4.0], [2.0]], [70.0, 80.0, 75.0], names=["C"])
    curve = figure.axes[0].lines[0]
    assert curve.get_xdata().tolist() == [0.0, 1.0, 2.0]
    assert curve.get_ydata().tolist() == [70.0, 75.0, 80.0]
    assert star_of(figure) == (2.0, 80.0)


def test_equal_scores_and_single_rows_are_drawn_too():
    assert len(drawn(POINTS, [80.0] * len(POINTS)).axes) == 1
    assert len(drawn([(1.0, 2.0**g) for g in range(4)], [1.0, 2.0, 3.0, 4.0]).axes) == 1


def test_files(tmp_path):
    Landscape(POINTS, bowl(POINTS)).write(tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    Landscape(POINTS, bowl(POINTS)).write(tmp_path / "a.svg")
    assert ET.parse(tmp_path / "a.svg").getroot().tag.endswith("svg")
    with pytest.raises(ValueError, match="png, svg, pdf by the ending"):
        Landscape(POINTS, bowl(POINTS)).write(tmp_path / "a.bmp")


def test_what_cannot_be_drawn():
    with pytest.raises(ValueError, match="one or two parameters, got 3"):
        drawn([(1.0, 2.0, 3.0)], [1.0])
    with pytest.raises(ValueError, match="no score"):
        drawn([(1.0, 2.0)], [float("nan")])


def test_missing_matplotlib_names_the_extra(monkeypatch):
    original = builtins.__import__

    def without(name, *rest, **more):
        if name.startswith("matplotlib"):
            raise ModuleNotFoundError(name)
        return original(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ModuleNotFoundError, match=r"hinge-svm\[plot\]"):
        drawn(POINTS, bowl(POINTS))


def search_of(**params):
    scores = np.arange(len(next(iter(params.values()))), dtype=float)
    return SimpleNamespace(
        cv_results_={"mean_test_score": scores, **{f"param_{k}": np.array(v, object) for k, v in params.items()}},
        best_index_=len(scores) - 1,
    )


def test_search_is_drawn_by_its_results():
    search = search_of(gamma=[1.0, 2.0, 1.0, 2.0], C=[1.0, 1.0, 4.0, 4.0], kernel=["rbf"] * 4)
    figure = searched(search, title="a search")
    assert (figure.axes[0].get_xlabel(), figure.axes[0].get_ylabel()) == ("log₂ C", "log₂ γ")
    assert star_of(figure) == (2.0, 1.0)
    assert searched(search_of(svc__nu=[0.1, 0.2])).axes[0].get_xlabel() == "log₂ svc__nu"


def test_last_round_of_a_candidate_counts():
    figure = searched(search_of(C=[1.0, 2.0, 4.0, 2.0]))
    assert figure.axes[0].lines[0].get_ydata().tolist() == [0.0, 3.0, 2.0]


def test_search_that_cannot_be_drawn():
    with pytest.raises(ValueError, match="positive numbers; gamma was also 'scale'"):
        searched(search_of(gamma=["scale", 1.0], C=[1.0, 2.0]))
    with pytest.raises(ValueError, match="one or two parameters"):
        searched(search_of(gamma=[1.0, 2.0], C=[1.0, 2.0], coef0=[0.0, 1.0]))


def test_levels_near_the_best_score_are_close():
    lines, bounds = contour_levels(np.array([0.5, 0.6, 0.7, 0.8, 0.81, 0.82, 0.83]))
    assert np.diff(lines).max() < np.diff(bounds).max()
    assert bounds[0] == 0.5
    assert bounds[-1] == 0.83
    errors, _ = contour_levels(1 - np.array([0.5, 0.6, 0.7, 0.8, 0.81, 0.82, 0.83]), smaller_is_better=True)
    assert errors == pytest.approx(1 - lines[::-1])
