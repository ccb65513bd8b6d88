"""A Dask cluster of worker processes, started once."""

import pytest

pytest.importorskip("distributed")

from distributed import Client, LocalCluster
from workers import until

import dask


@pytest.fixture(scope="session")
def client():
    """A client of two worker processes of one thread each; those that are killed are started again."""
    # Tasks are blamed for the death of those that run them, and all tests have partitions of the same names.
    # Some time after a worker was lost, a LocalCluster gives up those that happen not to be there at that moment.
    with (
        dask.config.set(
            {"distributed.deploy.lost-worker-timeout": "1h", "distributed.scheduler.allowed-failures": 100}
        ),
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=False
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.fixture
def five(client):
    """The same client while there are five workers."""
    client.cluster.scale(5)
    client.wait_for_workers(5, timeout=60)
    yield client
    client.cluster.scale(2)
    until(lambda: len(client.nthreads()) == 2)
