"""A toy that is being served."""

import threading
from collections.abc import Iterator

import pytest
from visitor import Visitor

from hinge.toy.server import ToyServer


@pytest.fixture(scope="session")
def toy() -> Iterator[Visitor]:
    with ToyServer(port=0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        yield Visitor(server)
        server.shutdown()
