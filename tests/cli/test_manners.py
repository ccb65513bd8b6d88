"""Manners of the command line: help, outputs that are looked at first, label columns, JSON, colours."""

import json
import os
import pty
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

from hinge.cli import COMMANDS
from hinge.cli.commands import grid as grid_command
from hinge.cli.commands import predict as predict_command
from hinge.cli.commands import train as train_command
from hinge.cli.tables import TABLES

FLOWERS = "width,height,species\n" + "".join(
    f"{k % 7 + (k % 2) * 9},{k % 5},{('rose', 'tulip')[k % 2]}\n" for k in range(40)
)


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").write_text("".join(f"{k % 2} 1:{k % 7 + 1} 2:{k % 5 + 1}\n" for k in range(30)))
    (tmp_path / "flowers.csv").write_text(FLOWERS)


# ---------------------------------------------------------------------- suggestions and help


def test_unknown_commands_and_options_get_a_suggestion(hinge):
    assert hinge("trian", "data").err.startswith("hinge: unknown command 'trian'; did you mean train?\n")
    assert "did you mean --strategy?" in hinge("grid", "--stratgy", "refine", "data").err
    assert "did you mean" not in hinge("xyz").err


@pytest.mark.parametrize("words", [["help", name] for name in COMMANDS] + [["help", "lab", "race"]])
def test_help_of_a_command_is_its_own(hinge, words):
    result = hinge(*words)
    assert result.code == 0
    assert (result.out, result.err) == hinge(*words[1:], "--help")[1:]
    assert hinge("help").out == hinge("--help").out
    assert "docs/index.md" in hinge("--help").out


def test_each_sub_command_of_the_laboratory_has_its_own_help(hinge):
    race, reproduce, listed = (hinge("lab", name, "--help") for name in ("race", "reproduce", "list"))
    assert [result.code for result in (race, reproduce, listed)] == [0, 0, 0]
    assert "--gamma" in race.out
    assert "--quick" not in race.out
    assert "--quick" in reproduce.out
    assert "--gamma" not in reproduce.out
    assert "--out" not in listed.out
    assert "hinge lab race DATA" in hinge("lab", "--help").out


# ---------------------------------------------------------------------- what cannot be written


@pytest.mark.parametrize(
    "words",
    [
        ["train", "data", "no/model"],
        ["train", "--report", "no/report.json", "data"],
        ["predict", "data", "data", "no/out"],
        ["predict", "--decision-values", "no/out", "data", "data", "fine"],
        ["grid", "-out", "no/rates.out", "data"],
        ["grid", "--plot", "no/picture.png", "data"],
        ["grid", "--report", "no/report.json", "data"],
        ["scale", "-s", "no/ranges", "data"],
        ["subset", "data", "3", "no/part"],
        ["report", "data", "data", "-o", "no/page.html"],
        ["lab", "race", "data", "--out", "data/race.png"],
        ["lab", "reproduce", "platt", "--out", "data/report"],
        ["man", "--out", "data/pages"],
    ],
    ids=lambda words: " ".join(words[:3]),
)
def test_outputs_are_looked_at_before_work_begins(hinge, monkeypatch, words):
    def too_early(*_, **__):
        raise AssertionError("work has begun")

    for module in (train_command, predict_command, grid_command):
        monkeypatch.setattr(module, "read_samples", too_early)
    result = hinge(*words)
    assert result.code == 1
    assert re.search(r"does not exist|is no folder", result.err), result.err
    assert len(result.err.splitlines()) <= 2


def test_a_folder_is_no_output(hinge, tmp_path):
    (tmp_path / "model").mkdir()
    result = hinge("train", "data", "model")
    assert (result.code, result.err.splitlines()) == (
        1, ["can't save model to file model", "model: it is a folder"],
    )  # fmt: skip
    assert hinge("train", "-q", "data", "/dev/null").code == 0


@pytest.mark.parametrize(
    "words",
    [["grid", "--plot", "a.png", "data"], ["report", "data", "data"], ["lab", "race", "data", "--out", "a.png"],
     ["lab", "reproduce", "platt"]],
)  # fmt: skip
def test_matplotlib_is_looked_for_before_work_begins(hinge, monkeypatch, words):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    result = hinge(*words)
    assert result.code == 1
    assert "pip install 'hinge-svm[" in result.err


# ---------------------------------------------------------------------- label columns


def test_words_are_labels_from_training_to_prediction(hinge, tmp_path):
    result = hinge("train", "flowers.csv", "m")
    assert result.code == 0, result.err
    assert "flowers.csv: labels are taken from column 3 ('species'), the only one of words" in result.err
    assert (tmp_path / "m.classes").read_text() == "rose\ntulip\n"
    assert hinge("predict", "--label", "species", "flowers.csv", "m", "out").err == ""
    assert set((tmp_path / "out").read_text().split()) == {"rose", "tulip"}
    (tmp_path / "one.csv").write_text("width,height,species\n10,1,tulip\n9,1,daisy\n")
    assert json.loads(hinge("predict", "--json", "one.csv", "m", "out").out)["accuracy"] == 50.0
    assert hinge("train", "-q", "-b", "1", "flowers.csv", "m").code == 0
    assert hinge("predict", "-b", "1", "flowers.csv", "m", "out").code == 0
    assert (tmp_path / "out").read_text().splitlines()[0] == "labels rose tulip"
    assert hinge("train", "-q", "data", "m").code == 0
    assert not (tmp_path / "m.classes").exists(), "numbers have no words"


def test_regression_and_scaling_refuse_words(hinge):
    assert "regression needs numbers" in hinge("train", "-s", "3", "flowers.csv").err
    assert "are words" in hinge("scale", "flowers.csv").err


def test_a_label_column_by_name_and_by_number(hinge, tmp_path):
    table = np.column_stack([np.arange(30) % 7 + 1, np.arange(30) % 2, np.arange(30) % 5 + 1])
    np.savetxt(tmp_path / "named.csv", table, delimiter=",", header="a,kind,b", comments="")
    np.savetxt(tmp_path / "bare.csv", table, delimiter=",")
    assert hinge("train", "-q", "data", "m").code == 0
    expected = (tmp_path / "m").read_text()
    for words in (["--label", "kind", "named.csv"], ["--label", "2", "named.csv"], ["--label=2", "bare.csv"]):
        result = hinge("train", *words, "m")
        assert (result.code, result.err) == (0, "")
        assert (tmp_path / "m").read_text() == expected
    result = hinge("train", "bare.csv", "m")
    assert result.err == "bare.csv: labels are taken from column 1; --label says another\n"
    assert "expected a column called 'nothing'" in hinge("train", "--label", "nothing", "named.csv").err
    assert "counts columns from 1" in hinge("train", "--label", "0", "named.csv").err
    assert "--label is for tables" in hinge("train", "--label", "2", "data").err


# ---------------------------------------------------------------------- JSON


def test_results_as_json(hinge, tmp_path):
    trained = json.loads(hinge("train", "--json", "data", "m").out)
    assert (trained["model_file"], trained["machines"][0]["status"]) == ("m", "converged")
    validated = json.loads(hinge("train", "--json", "-v", "3", "data").out)
    assert 0 <= validated["cv_accuracy"] <= 100
    predicted = json.loads(hinge("predict", "--json", "data", "m", "out").out)
    assert predicted["n_samples"] == 30
    assert predicted["accuracy"] == pytest.approx(100 * np.mean(np.loadtxt(tmp_path / "out") == np.arange(30) % 2))
    searched = json.loads(
        hinge("grid", "--json", "-log2c", "0,1,1", "-log2g", "0,0,1", "-gnuplot", "null", "data").out
    )
    assert len(searched["points"]) == 2
    assert searched["best"]["rate"] == max(point["rate"] for point in searched["points"])
    assert json.loads(hinge("check", "--json", "data").out)["n_errors"] == 0
    (tmp_path / "broken").write_text("1 1:x\n")
    result = hinge("check", "--json", "broken")
    assert result.code == 1
    assert json.loads(result.out)["errors"][0].startswith("line 1")


# ---------------------------------------------------------------------- colours and manual pages


def on_a_terminal(*words, **environment):
    """What a command prints on a terminal."""
    reader, writer = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "hinge.cli", *words],
        stdin=writer, stdout=writer, stderr=writer,
        env={**os.environ, "TERM": "xterm-256color", **environment},
    )  # fmt: skip
    os.close(writer)
    said = b""
    try:
        while block := os.read(reader, 2**16):
            said += block
    except OSError:  # the other side is closed
        pass
    os.close(reader)
    assert process.wait(60) == 0, said
    return said


COLOUR = re.compile(rb"\x1b\[(?:[0-9;]*;)?(?:3[0-9]|9[0-7])(?:;[0-9]+)*m")


def test_colours_are_for_terminals_that_want_them(hinge):
    words = ["demo"]
    assert COLOUR.search(on_a_terminal(*words)), "otherwise the next line would show nothing"
    assert not COLOUR.search(on_a_terminal(*words, NO_COLOR="1"))
    assert "\x1b" not in hinge(*words).out


@pytest.mark.parametrize("command", ["hinge", *(table.name for table in TABLES)])
def test_manual_pages_tell_every_option(hinge, command):
    page = hinge("man", command).out
    assert page.startswith('.TH "HINGE')
    plain = page.replace("\\-", "-")
    table = next((table for table in TABLES if table.name == command), None)
    for option in table.options if table else ():
        assert option.spelling in plain
        assert option.help in plain
    for program in ("mandoc", "groff"):
        if shutil.which(program):
            flags = ["-Tlint", "-Werror"] if program == "mandoc" else ["-man", "-Tascii", "-ww", "-z"]
            done = subprocess.run([program, *flags], input=page, text=True, capture_output=True, check=False)
            assert done.stderr == ""


def test_all_manual_pages_at_once(hinge, tmp_path):
    assert hinge("man", "--out", tmp_path / "man1").code == 0
    names = {path.name for path in (tmp_path / "man1").iterdir()}
    assert {"hinge.1", "hinge-train.1", "hinge-lab-race.1", "hinge-warm-up.1"} <= names
    assert "did you mean train?" in hinge("man", "tran").err
