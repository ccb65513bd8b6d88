"""Standard streams that fail: one sentence on standard error, an exit code, no traceback; what was done stays."""

import io
import os
import subprocess
import sys

import pytest

import hinge.cli
from hinge.cli import main
from hinge.cli.commands import COMMANDS

pytestmark = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")

DATA = "".join(f"{1 if k % 2 else -1} 1:{k % 2 + k / 100} 2:{k % 7}\n" for k in range(30))

COMMAND_LINES = {
    "train": ["data", "model"],
    "predict": ["data", "data.model", "predicted"],
    "scale": ["data"],
    "grid": ["-log2c", "0,0,1", "-log2g", "0,0,1", "-gnuplot", "null", "data"],
    "easy": ["data"],
    "check": ["data"],
    "subset": ["data", "4"],
    "info": ["data"],
    "report": ["--help"],
    "warm-up": ["--help"],
    "cluster": ["--help"],
    "toy": ["--help"],
    "lab": ["list"],
    "demo": ["--help"],
    "man": ["train"],
    "completion": ["bash"],
}


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").write_text(DATA)
    (tmp_path / "data.model").write_text(
        "svm_type c_svc\nkernel_type linear\nnr_class 2\ntotal_sv 2\nrho 0\nlabel 1 -1\nnr_sv 1 1\nSV\n"
        "1 1:1\n-1 1:0\n"
    )
    return tmp_path


def run_with(monkeypatch, words, program=main, **streams):
    """Run a command in this process with other standard streams; return its code and what it said of errors."""
    errors = io.StringIO()
    with monkeypatch.context() as patch:
        for name, stream in ({"stderr": errors} | streams).items():
            patch.setattr(sys, name, stream)
        try:
            code = program() if words is None else program(words)
        except SystemExit as leaving:
            code = leaving.code
    return code, errors.getvalue()


@pytest.mark.parametrize("command", COMMANDS)
def test_a_full_device(monkeypatch, command):
    with open("/dev/full", "w") as full:
        code, said = run_with(monkeypatch, [command, *COMMAND_LINES[command]], stdout=full)
        full.buffer.raw.close()
    assert (code, said) == (1, f"hinge {command}: cannot write to standard output: No space left on device\n")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_closed_output(monkeypatch, command):
    code, said = run_with(monkeypatch, [command, *COMMAND_LINES[command]], stdout=None)
    assert (code, said) == (1, f"hinge {command}: cannot write to standard output: it is closed\n")


@pytest.mark.parametrize(
    "words", [[], ["--help"], ["--version"], ["train", "--help"], ["train", "-v", "1", "data"]]
)
def test_help_and_errors_on_a_full_device(monkeypatch, words):
    with open("/dev/full", "w") as full:
        code, said = run_with(monkeypatch, words, stdout=full)
        full.buffer.raw.close()
    assert code == (1 if words else 2)  # without a command the usage is an error message
    is_asked = words[-1:] in (["--help"], ["--version"])  # errors go to standard error
    assert ("cannot write to standard output: No space left on device" in said) == is_asked


def test_what_was_trained_and_predicted_is_there(monkeypatch, files):
    for words, path in [
        (["train", "data", "model"], "model"),
        (["predict", "data", "model", "answers"], "answers"),
    ]:
        with open("/dev/full", "w") as full:
            assert run_with(monkeypatch, words, stdout=full)[0] == 1
            full.buffer.raw.close()
        assert (files / path).stat().st_size > 0
    assert len((files / "answers").read_text().split()) == 30


@pytest.mark.parametrize("closed", [True, False])
def test_errors_that_cannot_be_told_change_nothing(monkeypatch, capsys, closed):
    """Neither does an error go to standard output, nor does a warning end a training."""
    with open("/dev/full", "w", buffering=1) as full:
        stream = None if closed else full
        assert run_with(monkeypatch, ["train", "-w7", "2", "data", "model"], stderr=stream)[0] == 0
        assert "Total nSV" in capsys.readouterr().out
        assert run_with(monkeypatch, ["train", "nowhere"], stderr=stream)[0] == 1
        assert capsys.readouterr().out == ""
        full.buffer.raw.close()


@pytest.mark.parametrize("command", ["train", "predict", "scale", "grid", "check", "subset"])
def test_a_closed_input(monkeypatch, capsys, command):
    words = ["-" if word == "data" else word for word in COMMAND_LINES[command]]
    code, said = run_with(monkeypatch, [command, *words], stdin=None)
    assert code == 1
    assert said.splitlines()[-1] == "-: standard input is closed"
    assert capsys.readouterr().out == ""


def shell(line):
    """Run a line in a shell, with ``hinge`` as a real process."""
    line = line.replace("hinge ", f"{sys.executable} -m hinge.cli ")
    return subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        (
            "hinge scale data > /dev/full",
            1,
            "hinge scale: cannot write to standard output: No space left on device\n",
        ),
        ("hinge scale data >&-", 1, "hinge scale: cannot write to standard output: it is closed\n"),
        ("hinge check - <&- >&2", 1, "can't open input file -\n-: standard input is closed\n"),
        ("(trap '' PIPE; hinge completion zsh; echo $? > code) | true; exit $(cat code)", 1, ""),
    ],
)
def test_real_processes_end_without_a_word_of_python(line, code, said):
    done = shell(line)
    assert (done.returncode, done.stderr) == (code, said)


@pytest.mark.parametrize("command", ["train", "predict", "scale"])
def test_programs_for_scripts(monkeypatch, command):
    monkeypatch.setattr(sys, "argv", ["program", *COMMAND_LINES[command]])
    code, said = run_with(monkeypatch, None, stdout=None, program=getattr(hinge.cli, f"svm_{command}"))
    assert (code, said) == (1, f"hinge {command}: cannot write to standard output: it is closed\n")
