"""The benchmark harness: its verifier against hand-made and independent answers, and one small run."""

import json

import numpy as np
import pytest
import scipy.sparse as sp
from benchmarks import everyday, history, many, report, rounds, susy, verify
from benchmarks.__main__ import main
from benchmarks.cases import TOL
from benchmarks.goals import Goal
from benchmarks.processes import work
from benchmarks.render import RENDER
from benchmarks.summary import best_peer, figures, speedup
from benchmarks.verify import Answer, check_answer, check_classifier
from sklearn.svm import SVC, SVR

from hinge import Gram, Kernel, certificate
from hinge.dual.formulations import c_svc, epsilon_svr

LINE = np.array([[0.0], [1.0], [2.0], [3.0]])
SIDES = np.array([-1.0, -1.0, 1.0, 1.0])


def settings(task="binary", kernel="rbf", C=1.0, gamma=0.5, epsilon=0.1):
    return {"task": task, "kernel": kernel, "C": C, "gamma": gamma, "epsilon": epsilon}


def answer_of(machine, labels):
    dual = np.atleast_2d(machine.dual_coef_)
    return Answer(machine.support_.astype(np.int64), dual, np.ravel(machine.intercept_), np.asarray(labels, float))


@pytest.mark.parametrize(("size", "violation", "objective"), [(2.0, 0.0, -2.0), (1.9, 0.1, -1.995)])
def test_four_points_on_a_line(size, violation, objective):
    beta = np.array([0.0, -size, size, 0.0])
    check = check_classifier(LINE, SIDES, beta, -3.0, settings(kernel="linear", C=10.0))
    assert check.violation == pytest.approx(violation, abs=1e-12)
    assert check.objective == pytest.approx(objective)
    assert (check.box_error, check.sum_error, check.n_support, check.necessary) == (0.0, 0.0, 2, 8)


def test_an_infeasible_answer_is_seen():
    beta = np.array([0.0, -2.0, 2.5, 0.0])
    check = check_classifier(LINE, SIDES, beta, 7.0, settings(kernel="linear", C=2.0))
    assert check.box_error == pytest.approx(0.5)
    assert check.sum_error == pytest.approx(0.5)
    assert check.intercept_error > 1.0


@pytest.mark.parametrize("as_given", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("largest_dense", [0, 2**30])
def test_kernel_product_in_tiles(monkeypatch, as_given, largest_dense):
    monkeypatch.setattr(verify, "_LARGEST_DENSE", largest_dense)
    monkeypatch.setattr(verify, "_TILE_ROWS", 7)
    monkeypatch.setattr(verify, "_TILE_SUPPORT", 5)
    rng = np.random.default_rng(3)
    X = rng.normal(size=(40, 3)) * (rng.random((40, 3)) < 0.6)
    coefficients = rng.normal(size=40) * (rng.random(40) < 0.5)
    distances = ((X[:, None, :] - X[None, :, :]) ** 2).sum(axis=2)
    product = verify.kernel_product(as_given(X), coefficients, "rbf", 0.7)
    np.testing.assert_allclose(product, np.exp(-0.7 * distances) @ coefficients, atol=1e-12)


def test_agrees_with_the_certificate():
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(60, 4)), np.sign(rng.normal(size=60))
    gram = Gram(X, Kernel("rbf", gamma=0.5))
    beta = y * rng.choice([0.0, 0.3, 1.0], size=60)
    ours, theirs = check_classifier(X, y, beta, 0.0, settings()), certificate(c_svc(y, C=1.0), gram, beta)
    assert ours.violation == pytest.approx(theirs.violation)
    assert ours.objective == pytest.approx(theirs.objective)
    target, free = rng.normal(size=60), rng.choice([-1.0, -0.4, 0.0, 0.2, 1.0], size=60)
    ours = verify.check_regressor(X, target, free, 0.0, settings("regression"))
    halves = np.concatenate([np.maximum(free, 0), np.minimum(free, 0)])
    theirs = certificate(epsilon_svr(target, C=1.0, epsilon=0.1), gram, halves)
    assert ours.violation == pytest.approx(theirs.violation)
    assert ours.objective == pytest.approx(theirs.objective)


def test_every_pair_of_many_classes_is_checked(tmp_path):
    rng = np.random.default_rng(7)
    y = rng.integers(0, 4, size=120).astype(float)
    X = rng.normal(size=(120, 3)) + y[:, None]
    machine = SVC(C=1.0, gamma=0.5, tol=1e-6).fit(X, y)
    answer = answer_of(machine, machine.classes_)
    answer.save(tmp_path / "answer.npz")
    check = check_answer(X, y, Answer.read(tmp_path / "answer.npz"), settings("multiclass"))
    assert check.violation < 1e-5
    assert len(list(verify.machines(y, answer))) == 6
    answer.dual[:] *= 0.9
    assert check_answer(X, y, answer, settings("multiclass")).violation > 1e-2


def test_regression_of_another_library():
    rng = np.random.default_rng(9)
    X = rng.normal(size=(80, 2))
    y = X[:, 0] + 0.3 * rng.normal(size=80)
    machine = SVR(C=1.0, gamma=0.5, tol=1e-6).fit(X, y)
    check = check_answer(X, y, answer_of(machine, []), settings("regression"))
    assert check.violation < 1e-5
    assert check.intercept_error < 1e-5


def run(contender, seconds, violation, status="ok"):
    figures_of_run = {"seconds": seconds, "violation": violation} if status == "ok" else {}
    return {"kind": "run", "case": "c", "contender": contender, "library": contender, "status": status, "n": 9,
            **figures_of_run}  # fmt: skip


def test_a_wrong_answer_does_not_win():
    records = [run("hinge", 1.0, 9e-4), run("hinge", 3.0, 9e-4), run("hinge", 2.0, 9e-4)]
    records += [run("sklearnex", 0.5, 2e-3), run("libsvm", 8.0, 1.1e-3), run("sklearn", None, None, "timeout")]
    of_case = figures(records)["c"]
    assert best_peer(of_case).contender == "libsvm"
    assert speedup(of_case) == 4.0
    assert "missed" in Goal("speed-up", speedup(of_case), 5).line


def test_a_report_keeps_what_was_not_measured_again(tmp_path):
    old, new, page = tmp_path / "old", tmp_path / "new", tmp_path / "RESULTS.md"

    def measure(folder, section, date):
        computer = {"kind": "computer", "date": date, "cpu": "C", "cores": 2, "memory_gb": 8, "system": "S"}
        what = {"kind": "run", "section": section, "case": "c", "title": "T", "n": 9, "d": 2, "contender": "hinge"}
        run = {**what, "library": "hinge", "status": "ok", "seconds": 1.0, "violation": 1e-4}
        folder.mkdir(exist_ok=True)
        lines = [json.dumps(line) for line in ({**computer, "versions": {}}, run)]
        (folder / f"{section}.jsonl").write_text("\n".join(lines) + "\n")

    for section in ("table", "more"):
        measure(old, section, "2026-01-01")
    report.write(old, page)
    assert page.read_text().count("Measured on 2026-01-01") == 1
    kept = page.read_text().split("## Further shapes")[1].strip()
    measure(new, "table", "2026-02-02")
    assert report.write(new, page) == ["table"]
    assert page.read_text().count("Measured on 2026-02-02") == 1
    computer, again = page.read_text().split("## Further shapes")[1].strip().split("\n", 1)
    assert computer.startswith("Measured on 2026-01-01")
    assert again.strip() == kept
    before = page.read_text()
    report.write(new, page)
    assert page.read_text() == before


def earlier(date, commit, seconds, gain):
    records = [{**run("hinge", seconds, 9e-4), "case": "c"}, {**run("libsvm", gain * seconds, 9e-4), "case": "c"}]
    return history.line("table", records, {"date": date, "cpu": "C", "cores": 2}, commit)


def test_history_keeps_medians_and_ratios():
    kept = earlier("2026-01-01", "abc", 0.123456, 3.0)
    assert (kept["seconds"], kept["ratios"]) == ({"c": 0.1235}, {"c": 3.0})
    first = {
        "kind": "startup",
        "case": "startup",
        "contender": "import hinge",
        "what": "import hinge",
        "seconds": 2.0,
    }
    other = history.line("startup", [first, {**first, "seconds": 4.0}], {"date": "", "cpu": "C", "cores": 2}, None)
    assert (other["seconds"], other["ratios"]) == ({"import hinge": 3.0}, {})


def test_history_is_written_shown_and_drawn(tmp_path, capsys):
    path, picture = tmp_path / "history.jsonl", tmp_path / "deep" / "history.png"
    history.append("table", [run("hinge", 2.0, 9e-4)], path)
    history.append("table", [run("hinge", None, None, "timeout")], path)  # nothing to tell
    for known in (earlier("2026-01-01", "abc", 1.0, 3.0), earlier("2026-01-02", None, 1.5, 2.5)):
        with path.open("a") as file:
            file.write(json.dumps(known) + "\n")
    assert [line["seconds"] for line in history.read(path)] == [{"c": 2.0}, {"c": 1.0}, {"c": 1.5}]
    main(["history", "--file", str(path), "--plot", str(picture)])
    shown = capsys.readouterr().out
    assert "abc" in shown
    assert "1.5 (2.50 ×)" in shown
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_history_that_is_kept_can_be_read():
    lines = history.read()
    assert lines
    assert all(line["seconds"].keys() >= line["ratios"].keys() for line in lines)


@pytest.mark.slow
@pytest.mark.data
def test_a_small_run(tmp_path, capsys):
    options = ["--repeats", "1", "--out", str(tmp_path), "--history", str(tmp_path / "history.jsonl")]
    main(["table", "--cases", "heart", "--contenders", "hinge", "sklearn", *options])
    runs = [json.loads(line) for line in (tmp_path / "table.jsonl").read_text().splitlines()][1:]
    assert [record["contender"] for record in runs] == ["hinge", "sklearn"]
    assert all(record["status"] == "ok" and record["violation"] < 1.2e-3 for record in runs)
    assert runs[0]["objective"] == pytest.approx(runs[1]["objective"], rel=1e-5)
    assert runs[0]["ns_per_value"] > 0
    assert history.read(tmp_path / "history.jsonl")[0]["seconds"].keys() == {"heart"}
    main(["remark", "table", "heart", "A small set.", "--out", str(tmp_path)])
    with pytest.raises(SystemExit, match="no results of 'liver'"):
        main(["remark", "table", "liver", "Another.", "--out", str(tmp_path)])
    main(["report", "--out", str(tmp_path), "--to", str(tmp_path / "RESULTS.md")])
    text = (tmp_path / "RESULTS.md").read_text()
    assert "| heart |" in text
    assert "python -m benchmarks table" in text
    assert "\nA small set.\n" in text
    assert str(tmp_path) not in text
    assert "hinge" in capsys.readouterr().out


def test_the_section_of_many_fits_compares_the_same_searchlight(monkeypatch, capsys):
    monkeypatch.setattr(many, "_TURNS", 1)
    many.main("searchlight, rbf", 12)
    runs = [{"kind": "many", "case": "c", **json.loads(line)} for line in capsys.readouterr().out.splitlines()]
    assert [run["contender"] for run in runs] == ["hinge", "sklearn"]
    assert runs[0]["same_sharp"] == 1.0
    assert [row[0] for row in RENDER["many"]("many", runs).tables[0].rows] == ["c"]


@pytest.mark.slow
@pytest.mark.data
def test_the_section_of_small_data_compares_within_one_process(tmp_path, capsys):
    options = ["--out", str(tmp_path), "--history", str(tmp_path / "history.jsonl")]
    main(["small", "--cases", "iris.scale", *options])
    runs = [json.loads(line) for line in (tmp_path / "small.jsonl").read_text().splitlines()][1:]
    assert {"hinge", "sklearn"} <= {run["contender"] for run in runs}
    assert {run["operation"] for run in runs} == {"fit", "predict one", "predict all"}
    assert all(run["same"] > 0.98 for run in runs)
    main(["report", "--out", str(tmp_path), "--to", str(tmp_path / "RESULTS.md")])
    assert "| iris.scale | C = 1 | fit |" in (tmp_path / "RESULTS.md").read_text()
    assert "many classes, fit: speed-up" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.data
def test_the_section_of_everyday_data_verifies_answers_and_counts_right_ones(tmp_path, capsys):
    options = ["--out", str(tmp_path), "--history", str(tmp_path / "history.jsonl")]
    main(["everyday", "--cases", "heart_scale", *options])
    runs = [json.loads(line) for line in (tmp_path / "everyday.jsonl").read_text().splitlines()][1:]
    assert {run["problem"] for run in runs} == set(everyday.SETTINGS)
    assert {"hinge", "sklearn"} <= {run["contender"] for run in runs}
    assert all(run["violation"] <= TOL for run in runs if run["contender"] == "hinge")
    section = RENDER["everyday"]("everyday", runs)
    assert len(section.tables[0].rows) == len(everyday.SETTINGS)
    for run in runs:  # an answer that is wrong does not win
        if run["contender"] != "hinge":
            run["violation"] = 1.0
    assert all("none" in row[5] for row in RENDER["everyday"]("everyday", runs).tables[0].rows)
    assert "Share of cases below 1" in capsys.readouterr().out


def test_a_worker_that_is_silent_beyond_its_own_patience_is_ended(tmp_path, monkeypatch):
    (tmp_path / "silent_worker.py").write_text(
        "import json, time\nprint(json.dumps({'event': 'begin', 'patience': 0.2}), flush=True)\ntime.sleep(60)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    events = [message["event"] for message in work({"folder": str(tmp_path)}, 50.0, module="silent_worker")]
    assert events == ["begin", "timeout"]


def test_every_price_is_measured_where_it_is_paid(monkeypatch, capsys):
    """All prices but the two that are decisions, in the unit of the list: within three decades on any computer."""
    from benchmarks import prices

    monkeypatch.setattr(prices, "_REPEATS", 1)
    monkeypatch.setattr(prices, "_LEAST_SECONDS", 1e-4)
    main(["prices"])
    shown = capsys.readouterr().out
    listed = {name: value for name, value in vars(prices.prices).items() if name.isupper()}
    decisions = {"MULTIPLY_ADDS_PER_CALLED_VALUE", "MULTIPLY_ADDS_PER_KEPT_VALUE"}
    for name in listed.keys() - decisions:
        assert name in shown
    found = prices.measured()
    assert found.keys() == listed.keys() - decisions
    for name in found.keys() - {"SECONDS_PER_SMALL_PROBLEM"}:  # a difference of two times
        assert 1e-3 < found[name] / listed[name] < 1e3, name


def question(**figures):
    return rounds.Question(
        **{"thought": 0.5, "common": 10, "own": 4, "received": 6, "values": 100, "waited": 9.0} | figures
    )


def test_a_forecast_adds_up_what_questions_cost():
    course = rounds.Course(1000, 5, 1, 1.0, [question(), question(values=0, thought=0.25)])
    prices = rounds.Prices(question=0.01, worker=0.002, byte=0.001, value=0.1)
    one, four = (rounds.replayed(course, prices, workers) for workers in (1, 4))
    assert one.computing == pytest.approx(10.0)
    assert four.computing == pytest.approx(2.5)
    assert one.sending == pytest.approx(2 * 0.001 * 20)
    assert four.sending == pytest.approx(2 * 0.001 * 50)
    assert (one.asking, four.asking) == pytest.approx((2 * 0.012, 2 * 0.018))
    assert one.thinking == four.thinking == pytest.approx(0.75)
    assert four.seconds == pytest.approx(2.5 + 0.1 + 0.036 + 0.75)
    slow = prices.on_network(0.1, 100.0)
    assert (slow.question, slow.byte) == pytest.approx((0.11, 0.01))


def test_a_course_grows_as_two_sizes_tell():
    small = rounds.Course(1000, 5, 1, 1.0, [question(thought=0.2)] * 10)
    large = rounds.Course(4000, 5, 1, 1.0, [question(thought=0.5)] * 20)
    same = rounds.grown(small, large, 4000)
    assert (same.repeats, same.values) == (1.0, large.values)
    assert same.questions[0].thought == pytest.approx(0.5)
    more = rounds.grown(small, large, 16000)
    assert more.repeats == pytest.approx(2.0), "four times the samples had twice the questions"
    assert more.values == 2 * 4 * large.values
    assert more.questions[0].common == 10
    assert more.questions[0].received == 24
    assert more.questions[0].thought == pytest.approx(0.1 + 16 * 0.1)


def test_data_like_susy_are_the_same_however_they_are_divided(monkeypatch):
    monkeypatch.setattr(susy, "_CHUNK", 200)
    X, y = susy.made(0, 700)
    assert X.shape == (700, susy.WIDTH)
    assert X.dtype == np.float32
    assert np.isfinite(X).all()
    assert 0.3 < (y > 0).mean() < 0.6
    parts = [susy.made(start, stop) for start, stop in ((0, 400), (400, 700))]
    assert np.array_equal(np.concatenate([part[0] for part in parts]), X)
    pytest.importorskip("dask.array")
    rows, labels = susy.collection(700)
    assert rows.chunks[0] == (200, 200, 200, 100)
    assert np.array_equal(rows.compute(scheduler="sync"), X)
    assert np.array_equal(labels.compute(scheduler="sync"), y)


def test_the_section_of_clusters_says_whether_forecasts_hold():
    fit = {"kind": "cluster", "case": "c", "what": "fit", "data": "susy", "n": 10, "rounds": 3, "questions": 5,
           "sent": 2e6, "received": 1e6}  # fmt: skip
    runs = [
        {**fit, "workers": 0, "seconds": 2.0},
        {**fit, "workers": 1, "seconds": 4.0, "foretold": {"seconds": 4.4}},
        {**fit, "workers": 2, "seconds": 3.0, "foretold": {"seconds": 3.3}},
    ]
    shown = RENDER["cluster"]("cluster", runs)
    assert [row[3] for row in shown.tables[0].rows] == ["1.00", "2.00", "1.50"]
    assert "are within 25%" in shown.notes[0]
    runs[2]["foretold"]["seconds"] = 4.0
    assert "susy, 10, 2 workers (+33%)" in RENDER["cluster"]("cluster", runs).notes[0]
