"""The toy as a widget: the same questions, through a notebook's messages."""

import json

import numpy as np
import pytest
from visitor import VIEW, scene_of

anywidget = pytest.importorskip("anywidget", reason="anywidget is not installed (extra: notebook)")


@pytest.fixture
def toy():
    from hinge.toy import Toy

    widget = Toy("http://127.0.0.1:1/x/#abc")
    widget.sent = []
    widget.send = lambda content, buffers=(): widget.sent.append((content, buffers))
    return widget


def test_it_begins_with_a_link(toy):
    assert toy.state == "abc"


def test_a_question_is_answered(toy):
    toy._answer(toy, {"number": 3, "question": "fit", "body": {"scene": scene_of(), **VIEW}}, [])
    ((content, (packed,)),) = toy.sent
    assert content == {"number": 3}
    length = int.from_bytes(packed[:4], "little")
    assert json.loads(packed[4 : 4 + length])["status"] == "converged"
    assert np.frombuffer(packed[4 + length :], "<f4").size == 30 + 30 + 256


@pytest.mark.parametrize("message", [{}, {"question": "fit"}, {"question": "fit", "body": {"scene": 1}}])
def test_nonsense_is_answered_with_a_sentence(toy, message):
    toy._answer(toy, {"number": 1, **message}, [])
    assert toy.sent[0][0]["error"]


def test_the_module_is_one_text(toy):
    assert "import " not in "\n".join(line for line in toy._esm.splitlines() if line.startswith("import"))
    assert toy._esm.count("export ") == 1
