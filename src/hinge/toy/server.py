"""A small web server for one person at this computer: the page, and answers to its questions.

It listens on 127.0.0.1 alone. Every address begins with a random token, so that other users of the computer cannot
ask; the Host header must name this computer, so that no page from elsewhere can ask by a name of its own (DNS
rebinding). Bodies are limited, and so are requests that wait.
"""

from __future__ import annotations

import json
import secrets
import threading
import webbrowser
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any

from hinge.toy.answers import answer, warm_up
from hinge.toy.scene import SceneError

# The files of the page, and what they are.
_PAGE = {
    "": ("index.html", "text/html"),
    "toy.js": ("toy.js", "text/javascript"),
    "draw.js": ("draw.js", "text/javascript"),
    "start.js": ("start.js", "text/javascript"),
    "toy.css": ("toy.css", "text/css"),
}

# Bytes of a question: 500 points with long numbers have 30,000.
_MOST_BYTES = 100_000

# Questions at once, waiting ones included. A page asks one at a time.
_MOST_WAITING = 8

# Seconds that a connection may say nothing.
_PATIENCE = 10.0

_OURSELVES = ("127.0.0.1", "localhost", "[::1]")


class ToyServer(ThreadingHTTPServer):
    """The server of one toy.

    Parameters
    ----------
    port : int
        Port on 127.0.0.1; 0 takes a free one.

    Attributes
    ----------
    address : str
        Where the page is, token included.

    Raises
    ------
    OSError
        The port is taken.

    Examples
    --------
    >>> with ToyServer(port=0) as server:
    ...     server.address.startswith("http://127.0.0.1:")
    True
    """

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, port: int = 8765) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.token = secrets.token_urlsafe(16)
        self.address = f"http://127.0.0.1:{self.server_port}/{self.token}/"
        self.waiting = threading.BoundedSemaphore(_MOST_WAITING)
        self.busy = threading.Lock()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing where a page was closed before its answer came."""


class _Handler(BaseHTTPRequestHandler):
    server: ToyServer
    protocol_version = "HTTP/1.1"
    timeout = _PATIENCE

    def do_GET(self) -> None:
        """Send a file of the page."""
        name = self._name()
        if name is None:
            return
        if name not in _PAGE:
            self._refuse(HTTPStatus.NOT_FOUND, f"there is no {name[:40]!r} here")
            return
        file, kind = _PAGE[name]
        self._send(HTTPStatus.OK, f"{kind}; charset=utf-8", files("hinge.toy").joinpath("page", file).read_bytes())

    def do_POST(self) -> None:
        """Answer a question."""
        name = self._name()
        if name is None:
            return
        body = self._body()
        if body is None:
            return
        if not self.server.waiting.acquire(blocking=False):
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, "too many questions at once; ask again in a moment")
            return
        try:
            with self.server.busy:  # one fit at a time: they use all cores
                message = answer(name, json.loads(body)).packed()
        except SceneError as error:
            self._refuse(HTTPStatus.UNPROCESSABLE_ENTITY, str(error))
        except (ValueError, RecursionError):
            self._refuse(HTTPStatus.BAD_REQUEST, "the question is no JSON")
        else:
            self._send(HTTPStatus.OK, "application/octet-stream", message)
        finally:
            self.server.waiting.release()

    def _name(self) -> str | None:
        """Return what is asked for; None, with an answer sent, where nobody here should ask."""
        host = self.headers.get("Host", "").rpartition(":")
        if (host[0] if host[2].isdigit() else host[2]) not in _OURSELVES:
            self._refuse(HTTPStatus.FORBIDDEN, "this page is for the person at this computer: use its own address")
            return None
        token, _, name = self.path.split("?")[0].removeprefix("/").partition("/")
        if not secrets.compare_digest(token.encode(), self.server.token.encode()):
            self._refuse(HTTPStatus.FORBIDDEN, "the address lacks its token: use the one that hinge toy printed")
            return None
        return name

    def _body(self) -> bytes | None:
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()):
            self._refuse(HTTPStatus.LENGTH_REQUIRED, "a question says how long it is")
            return None
        if len(length) > 9 or int(length) > _MOST_BYTES:
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a question has at most {_MOST_BYTES} bytes")
            return None
        return self.rfile.read(int(length))

    def _refuse(self, status: HTTPStatus, sentence: str) -> None:
        self.close_connection = True  # what is left of the request was not read
        self._send(status, "text/plain; charset=utf-8", sentence.encode())

    def _send(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header(
            "Content-Security-Policy", "default-src 'self'; img-src 'self' data: blob:; frame-ancestors 'none'"
        )
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: a drag of the mouse asks twenty times a second."""


def serve(port: int = 8765, *, state: str = "", open_browser: bool = True) -> None:
    """Serve the toy until Ctrl-C.

    Parameters
    ----------
    port : int
        Port on 127.0.0.1; 0 takes a free one.
    state : str
        What the page begins with: a link that somebody copied from it, or the part behind ``#``.
    open_browser : bool
        Whether to open the page in the default browser.

    Raises
    ------
    OSError
        The port is taken.

    Examples
    --------
    >>> from hinge.toy import serve
    >>> serve(port=8080)      # doctest: +SKIP
    """
    with ToyServer(port) as server:
        address = server.address + (f"#{state.rpartition('#')[2]}" if state else "")
        print(f"The toy is at {address}\nCtrl-C ends it.", flush=True)  # noqa: T201 - what it is called for
        for task, arguments in ((warm_up, ()), (webbrowser.open, (address,))):
            if task is warm_up or open_browser:
                threading.Thread(target=task, args=arguments, daemon=True).start()
        try:
            server.serve_forever(poll_interval=0.1)
        except KeyboardInterrupt:
            print()  # noqa: T201 - behind the ^C
