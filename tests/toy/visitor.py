"""Somebody who asks a toy, and scenes to ask it about."""

import json
import urllib.error
import urllib.request
from typing import Any

import numpy as np

from hinge.toy.server import ToyServer

VIEW = {"left": 0, "right": 1, "bottom": 0, "top": 1, "side": 16}


def scene_of(machine: str = "SVC", n: int = 30, n_classes: int = 2, **changes: Any) -> dict[str, Any]:
    rng = np.random.default_rng(n)
    labels = np.arange(n) % n_classes
    spots = np.clip(rng.normal(0.3 + 0.15 * labels[:, None], 0.12, size=(n, 2)), 0, 1)
    points = [[float(x), float(y), int(label)] for (x, y), label in zip(spots, labels, strict=True)]
    numbers = {"C": 10, "gamma": 5, "coef0": 0, "nu": 0.3, "epsilon": 0.1, "tol": 1e-3, "degree": 3}
    return {"machine": machine, "kernel": "rbf", "points": points, **numbers, **changes}


class Visitor:
    """Somebody who asks a toy, politely or not."""

    def __init__(self, server: ToyServer) -> None:
        self.server, self.address = server, server.address

    def send(
        self, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> tuple[int, bytes]:
        """Return status and body of the answer; the path begins behind the token, or with a slash before it."""
        root = f"http://127.0.0.1:{self.server.server_port}"
        url = root + path if path.startswith("/") else self.address + path
        request = urllib.request.Request(url, body, headers or {})
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return response.status, response.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def ask(self, question: str, **asked: Any) -> tuple[dict[str, Any], np.ndarray]:
        """Return head and numbers of an answer."""
        status, body = self.send(question, json.dumps({**VIEW, **asked}).encode())
        assert status == 200, body
        length = int.from_bytes(body[:4], "little")
        return json.loads(body[4 : 4 + length]), np.frombuffer(body[4 + length :], "<f4")

    def refused(self, question: str, **asked: Any) -> str:
        """Return the sentence with which a question is turned down."""
        status, body = self.send(question, json.dumps({**VIEW, **asked}).encode())
        assert status == 422, (status, body[:200])
        return body.decode()
