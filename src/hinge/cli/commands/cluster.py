"""``hinge cluster``: a Dask cluster of this computer, to try out what runs on larger ones."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Sequence

from hinge.cli.data import leave
from hinge.cli.options import EXIT_OK
from hinge.cli.tables import CLUSTER
from hinge.runtime.threads import available_threads


def run(arguments: Sequence[str]) -> int:
    """Run the command; return its exit code."""
    parsed = CLUSTER.parse(arguments)
    try:
        from distributed import LocalCluster

        import dask
    except ModuleNotFoundError:
        leave("hinge cluster needs Dask: pip install 'hinge-svm[cluster]'")
    for name in ("port", "dashboard-port"):
        _check_port(name, parsed[name])
    dashboard = parsed["dashboard-port"]
    try:
        with (
            # Dask starts a worker again that was killed; but it would give up those that are not there just then.
            dask.config.set({"distributed.deploy.lost-worker-timeout": "10000h"}),
            LocalCluster(
                n_workers=parsed["workers"] or available_threads(),
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                scheduler_port=parsed["port"],
                dashboard_address=None if dashboard is None else f"127.0.0.1:{dashboard}",
                memory_limit=parsed["worker-memory"] or "auto",
            ) as cluster,
        ):
            print(f"scheduler  {cluster.scheduler_address}")
            if dashboard is not None:
                print(f"dashboard  {cluster.dashboard_link}")
            print(f"workers    {len(cluster.workers)} processes of one thread each; Ctrl-C ends them", flush=True)
            threading.Event().wait()
    except KeyboardInterrupt:
        print("the cluster has ended", file=sys.stderr)
    except (OSError, RuntimeError) as error:
        leave(f"hinge cluster: the cluster did not start ({error})")
    return EXIT_OK


def _check_port(name: str, port: int | None) -> None:
    """Leave if a port is taken: Dask would take another one, or fail with many words."""
    if not port:
        return
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind(("127.0.0.1", port))
        except OSError as error:
            leave(f"hinge cluster: port {port} cannot be used ({error.strerror}); --{name} 0 takes a free one")
