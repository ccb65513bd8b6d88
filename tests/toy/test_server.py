"""The toy's server: who may ask, how much, and that it outlives everything it is sent."""

import json
import random
import socket
import threading

import pytest
from visitor import VIEW, scene_of

from hinge.cli import main
from hinge.toy.server import ToyServer


def raw(toy, message: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", toy.server.server_port), timeout=30) as connection:
        connection.sendall(message)
        connection.shutdown(socket.SHUT_WR)
        answer = b""
        while part := connection.recv(65536):
            answer += part
    return answer


def test_it_listens_to_this_computer_alone(toy):
    assert toy.server.server_address[0] == "127.0.0.1"


@pytest.mark.parametrize("file", ["", "toy.js", "draw.js", "start.js", "toy.css"])
def test_the_page_is_there(toy, file):
    status, body = toy.send(file)
    assert status == 200
    assert body


@pytest.mark.parametrize("path", ["/", "/toy.js", "/wrong/", "/wrong/fit", "//fit"])
def test_nobody_gets_in_without_the_token(toy, path):
    assert toy.send(path)[0] == 403
    assert toy.send(path, b"{}")[0] == 403


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", ""])
def test_another_host_is_refused(toy, host):
    assert toy.send("", headers={"Host": host})[0] == 403


@pytest.mark.parametrize("host", ["localhost:1234", "127.0.0.1", "[::1]:80"])
def test_a_tunnel_may_have_another_port(toy, host):
    assert toy.send("", headers={"Host": host})[0] == 200


@pytest.mark.parametrize("path", ["../server.py", "%2e%2e/server.py", "page/toy.js", "..%5cserver.py"])
def test_only_files_of_the_page_are_sent(toy, path):
    assert toy.send(path)[0] == 404


def test_large_and_endless_questions_are_refused(toy):
    assert toy.send("fit", b" " * 100_001)[0] == 413
    path = toy.address.split("/", 3)[3]
    head = f"POST /{path}fit HTTP/1.1\r\nHost: localhost\r\n".encode()
    assert b" 411 " in raw(toy, head + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
    assert b" 411 " in raw(toy, head + b"Content-Length: -5\r\n\r\n")
    assert b" 413 " in raw(toy, head + b"Content-Length: 99999999999999999999999\r\n\r\n")


@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe", b"[" * 50_000, b'{"scene": NaN}'])
def test_what_is_no_question_is_refused(toy, body):
    assert toy.send("fit", body)[0] in (400, 422)


def test_a_thousand_strange_requests(toy):
    """Every one gets a sentence with 4xx, or an answer where it happens to make sense; the server lives on."""
    rng = random.Random(5)
    strange = [
        None,
        True,
        -1,
        0,
        1e308,
        float("nan"),
        float("inf"),
        "",
        "x" * 300,
        [],
        {},
        [[]],
        [1, 2],
        "rbf",
        -(10**40),
    ]
    seen = set()
    for _ in range(1000):
        asked = {**VIEW, "scene": scene_of(n=8), "solver": "block", "steps": 2}
        for _ in range(rng.randint(1, 3)):
            place = rng.choice([asked, asked["scene"] or asked]) if isinstance(asked["scene"], dict) else asked
            key = rng.choice(list(place))
            if key == "points" and place[key] and isinstance(place[key], list) and rng.random() < 0.7:
                place[key][rng.randrange(len(place[key]))] = rng.choice(strange)
                break
            place[key] = rng.choice(strange)
        body = json.dumps(asked).encode()
        if rng.random() < 0.2:
            body = bytes(rng.randrange(256) if rng.random() < 0.02 else b for b in body)
        question = rng.choices(["fit", "step", "map", "nothing"], (10, 10, 1, 2))[0]
        status, answer = toy.send(question, body)
        seen.add(status)
        assert status == 200 or 400 <= status < 500, (status, answer[:200], body[:400])
        assert status == 200 or (answer and b"Traceback" not in answer)
    assert {200, 400, 422} <= seen
    assert toy.ask("fit", scene=scene_of())[0]["status"] == "converged"


def test_many_at_once_all_get_an_answer(toy):
    statuses = []

    def ask():
        body = json.dumps({**VIEW, "scene": scene_of(n=100)}).encode()
        statuses.append(toy.send("fit", body)[0])

    threads = [threading.Thread(target=ask) for _ in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(statuses) <= {200, 503}
    assert statuses.count(200) >= 8


def test_a_port_that_is_taken_is_said(toy, capsys):
    with pytest.raises(SystemExit) as left:
        main(["toy", "--no-browser", "--port", str(toy.server.server_port)])
    assert left.value.code == 1
    assert "cannot be used" in capsys.readouterr().err


def test_tokens_differ():
    with ToyServer(0) as first, ToyServer(0) as second:
        assert first.token != second.token


def test_answers_do_not_wait_for_their_head_to_be_acknowledged(toy, monkeypatch):
    seen = []
    handlers = toy.server.RequestHandlerClass
    original = handlers.do_GET

    def look(handler):
        seen.append(handler.connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        original(handler)

    monkeypatch.setattr(handlers, "do_GET", look)
    toy.send("")
    assert seen == [1]
