"""Command lines: one table drives parsing, help and completion."""

import shutil
import subprocess

import pytest

from hinge.cli import COMMANDS
from hinge.cli.options import Command, Option
from hinge.cli.tables import PREDICT, TABLES, TRAIN
from hinge.settings import RULES, Settings


def test_every_command_has_help(hinge):
    for name in COMMANDS:
        result = hinge(name, "--help")
        assert result.code == 0
        assert f"hinge {name}" in result.out
    assert hinge("--help").code == 0
    assert hinge("--version").out.startswith("hinge ")
    assert hinge().code == 2
    result = hinge("nonsense")
    assert (result.code, result.out) == (2, "")
    assert "unknown command 'nonsense'" in result.err


def test_help_names_every_option_and_its_default():
    for command in TABLES:
        text = command.help_text()
        assert all(option.spelling in text and option.help[:20] in text for option in command.options)
        assert max(map(len, text.splitlines())) <= 110
    assert "[default: 0.001]" in TRAIN.help_text()
    assert "exit codes: 0 success; 1 an error" in TRAIN.help_text()


def test_short_and_long_options_say_the_same():
    line = "-s 1 -t 0 -d 2 -g 0.5 -r 1 -c 3 -n 0.2 -p 0.3 -m 50 -e 0.01 -h 0 -b 1 -w1 2 -w-2 5 -v 4 -q file"
    words = line.split()
    line = (
        "--type 1 --kernel=0 --degree 2 --gamma 0.5 --coef0=1 --cost 3 --nu .2 --epsilon 3e-1 file --cache 50 "
        "--tolerance=.01 --shrinking 0 --probability 1 --weight 1=2 --weight=-2=5 --folds 4 --quiet"
    )
    longer = line.split()
    short, long = TRAIN.parse(words), TRAIN.parse(longer)
    assert short == long
    assert short.weights == ((1, 2.0), (-2, 5.0))
    assert short.files == ("file",)


def test_rules_are_those_of_the_solver():
    (option,) = (option for option in TRAIN.options if option.long == "rule")
    assert (option.choices, option.default) == (tuple(RULES), Settings.rule)


def test_only_the_letter_of_a_short_option_counts():
    assert TRAIN.parse(["-cost", "5", "file"])["cost"] == 5
    assert TRAIN.parse(["-quick", "file"])["quiet"] is True
    assert TRAIN.parse(["-c", "-5", "file"])["cost"] == -5
    assert PREDICT.parse(["-q", "-", "model", "out"]).files == ("-", "model", "out")
    assert TRAIN.parse(["file", "-model"]).files == ("file", "-model")
    assert TRAIN.parse(["--", "--file"]).files == ("--file",)


@pytest.mark.parametrize(
    ("words", "code", "error"),
    [
        ([], 1, "hinge train: training_set_file is missing\n"),
        (["-c"], 1, "hinge train: -c needs a value: -c, --cost C\n"),
        (["-c", "1"], 1, "hinge train: training_set_file is missing\n"),
        (["a", "b", "c"], 1, "hinge train: 'c' is one argument too many\n"),
        (["-x", "1", "file"], 1, "Unknown option: -x\n"),
        (["-v", "1", "file"], 1, "n-fold cross validation: n must >= 2\n"),
        (["--gibberish", "file"], 2, "hinge train: unknown option --gibberish\n"),
        (["--treads", "2", "file"], 2, "hinge train: unknown option --treads; did you mean --threads?\n"),
        (["--cost", "abc", "file"], 2, "hinge train: --cost takes a number, got 'abc'"),
        (["-c", "1x", "file"], 2, "hinge train: -c takes a number, got '1x'"),
        (["-c", "nan", "file"], 2, "hinge train: -c takes a number, got 'nan'"),
        (["-s", "0.5", "file"], 2, "hinge train: -s takes a whole number"),
        (["-wx", "1", "file"], 2, "hinge train: -wx needs a label and a number"),
        (["--solver", "fast", "file"], 2, "hinge train: --solver takes one of auto, block, smo, got 'fast'"),
        (["--quiet=1", "file"], 2, "hinge train: --quiet takes no value"),
        (["file", "--cost"], 2, "hinge train: --cost needs a value: -c, --cost C\n"),
    ],
)
def test_wrong_usage(words, code, error, hinge):
    result = hinge("train", *words)
    assert result.code == code
    assert result.err.startswith(error)
    assert result.out == ""
    assert len(result.err.splitlines()) <= 3
    if error.endswith("\n"):
        assert result.err.splitlines()[1] == "Usage: hinge train [options] training_set_file [model_file]"


def test_a_table_drives_parsing_and_help():
    command = Command(
        "x", "Does x.", (Option("size", "Its size.", "z", "range", metavar="A B"),), ("file", "[more]")
    )
    parsed = command.parse(["-z", "1", "2", "f"])
    assert parsed["size"] == (1.0, 2.0)
    assert parsed.given == {"size"}
    assert "  -z, --size A B\n        Its size." in command.help_text()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell, hinge):
    script = hinge("completion", shell).out
    assert all(name in script for name in COMMANDS)
    assert all(f"{'-l ' if shell == 'fish' else '--'}{option.long}" in script
               for command in TABLES for option in command.options)  # fmt: skip
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=script, text=True, check=True)
    assert hinge("completion", "tcsh").code == 2


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash not installed")
def test_bash_completes(hinge):
    script = hinge("completion", "bash").out
    ask = 'COMP_WORDS=(hinge train --ti); COMP_CWORD=2; _hinge; echo "${COMPREPLY[@]}"'
    done = subprocess.run(["bash", "-c", f"{script}\n{ask}"], capture_output=True, text=True, check=True)
    assert done.stdout == "--time-limit\n"


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["train", "--time-limit", "-1"], "--time-limit takes a number above 0, got '-1'"),
        (["train", "--time-limit", "0"], "--time-limit takes a number above 0, got '0'"),
        (["train", "--time-limit", "nan"], "--time-limit takes a number, got 'nan'"),
        (["train", "--threads", "0"], "--threads takes a number from 1, got '0'"),
        (["train", "--threads", "100000"], "--threads takes a number up to 1024, got '100000'"),
        (["predict", "-b", "2"], "-b takes a number up to 1, got '2'"),
        (["predict", "-b", "-1"], "-b takes a number from 0, got '-1'"),
        (
            ["grid", "-log2c", "5000,6000,1000"],
            "-log2c takes exponents between -1000 and 1000, got '5000,6000,1000'",
        ),
        (["lab", "race", "--time-limit", "0"], "--time-limit takes a number above 0, got '0'"),
        (["lab", "race", "--c", "-1"], "--c takes a number above 0, got '-1'"),
        (["lab", "race", "--gamma", "0"], "--gamma takes a number above 0, got '0'"),
        (["lab", "race", "--tolerance", "0"], "--tolerance takes a number above 0, got '0'"),
        (["lab", "race", "--cache", "-5"], "--cache takes a number above 0, got '-5'"),
    ],
)
def test_numbers_that_mean_nothing_are_refused(hinge, tmp_path, monkeypatch, words, reason):
    monkeypatch.chdir(tmp_path)
    files = {"train": ["data"], "predict": ["data", "model", "out"], "grid": ["data"], "lab": ["data"]}
    result = hinge(*words, *files[words[0]])
    name = "lab race" if words[0] == "lab" else words[0]
    assert (result.code, result.err) == (2, f"hinge {name}: {reason}\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["binary", "three classes", "regression", "cross-validation"])
def test_a_run_without_a_step_does_not_replace_a_model(hinge, tmp_path, kind):
    rows = [f"{k % (3 if kind == 'three classes' else 2)} 1:{k % 7} 2:{k % 5}" for k in range(200)]
    (tmp_path / "data").write_text("\n".join(rows) + "\n")
    model = tmp_path / "model"
    kinds = {"regression": ["-s", "3"], "cross-validation": ["-v", "2"]}
    words = ["train", "-q", *kinds.get(kind, []), "--time-limit", "1e-300", tmp_path / "data", model]
    if kind == "cross-validation":
        assert hinge(*words).code == 0
        assert not model.exists()
        return
    first = hinge(*words)
    assert first.code == 0, "there is nothing to lose yet"
    assert "WARNING" in first.err
    model.write_text("the work of a week")
    second = hinge(*words)
    assert second.code == 1
    assert second.err.endswith(
        f"{model} was not replaced: the time was up before the first step. Give more time, or --force\n"
    )
    assert model.read_text() == "the work of a week"
    assert hinge(words[0], "--force", *words[1:]).code == 0
    assert model.read_text().startswith("svm_type")
