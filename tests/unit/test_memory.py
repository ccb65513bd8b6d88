"""How much memory is free: the machine, the limits of the process, and control groups of both kinds."""

import math
import subprocess
import sys

import pytest

from hinge.runtime import memory

MB = 2**20


@pytest.fixture
def linux(tmp_path, monkeypatch):
    """Two folders that look like /proc and /sys/fs/cgroup, on a machine with 8000 MB to spare."""
    processes, groups = tmp_path / "proc", tmp_path / "cgroup"
    (processes / "self").mkdir(parents=True)
    groups.mkdir()
    (processes / "meminfo").write_text("MemTotal: 1 kB\nMemAvailable: 8192000 kB\n")
    (processes / "self/statm").write_text("100 50 20 5 0 60 0\n")
    monkeypatch.setattr(memory, "PROCESSES", processes)
    monkeypatch.setattr(memory, "GROUPS", groups)
    return processes, groups


def group(folder, *, limit, used, kept=0, version=2):
    folder.mkdir(parents=True, exist_ok=True)
    names = {1: ("memory.limit_in_bytes", "memory.usage_in_bytes"), 2: ("memory.max", "memory.current")}
    for name, value in zip(names[version], (limit, used), strict=True):
        (folder / name).write_text(f"{value}\n")
    prefix = "" if version == 2 else "total_"
    stat = f"anon 1\n{prefix}active_file {kept // 2}\n{prefix}inactive_file {kept - kept // 2}\n"
    (folder / "memory.stat").write_text(stat)


def test_without_limits_it_is_what_the_machine_has(linux):
    assert memory.free_bytes() == 8000 * MB
    memory._last_look = (-math.inf, 0)
    assert memory.default_cache_bytes() == 2000 * MB


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("where", ["", "own", "own/inner"])
def test_a_control_group_limits_it_and_so_do_those_above(linux, version, where):
    processes, groups = linux
    lines = {1: "3:cpu,memory:/own/inner\n0::/\n", 2: "0::/own/inner\n"}
    (processes / "self/cgroup").write_text(lines[version])
    root = groups if version == 2 else groups / "memory"
    for inner in ("own/inner", "own"):
        group(root / inner, limit="max" if version == 2 else 2**63 - 4096, used=MB, version=version)
    group(root / where, limit=300 * MB, used=100 * MB, version=version)
    assert memory.free_bytes() == 200 * MB


@pytest.mark.parametrize("version", [1, 2])
def test_a_container_that_sees_its_own_group_as_the_root(linux, version):
    processes, groups = linux
    (processes / "self/cgroup").write_text(
        "0::/docker/0123\n" if version == 2 else "4:memory:/docker/0123\n1:name=systemd:/docker/0123\n"
    )
    group(groups if version == 2 else groups / "memory", limit=500 * MB, used=450 * MB, version=version)
    assert memory.free_bytes() == 50 * MB


@pytest.mark.parametrize("version", [1, 2])
def test_cached_pages_of_files_are_not_lost(linux, version):
    processes, groups = linux
    (processes / "self/cgroup").write_text("0::/\n" if version == 2 else "4:memory:/\n")
    root = groups if version == 2 else groups / "memory"
    group(root, limit=500 * MB, used=499 * MB, kept=400 * MB, version=version)
    assert memory.free_bytes() == 401 * MB


def test_nothing_left_is_nothing(linux):
    processes, groups = linux
    (processes / "self/cgroup").write_text("0::/\n")
    group(groups, limit=5 * MB, used=6 * MB)
    assert memory.free_bytes() == 0
    memory._last_look = (-math.inf, 0)  # a look of a moment ago would still count
    assert memory.default_cache_bytes() == 1


@pytest.mark.parametrize("text", ["", "max", "x"])
def test_unreadable_figures_are_passed_over(linux, text):
    processes, groups = linux
    (processes / "self/cgroup").write_text("0::/\n")
    group(groups, limit=text, used=text)
    assert memory.free_bytes() == 8000 * MB


IN_A_LIMITED_PROCESS = """
import resource, sys
import numpy as np
from hinge import SVC
from hinge.runtime import memory
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
limit = used + 300 * 2**20
resource.setrlimit(getattr(resource, sys.argv[1]), (limit, limit))
free = memory.free_bytes()
assert free <= 300 * 2**20, free
assert free > 200 * 2**20 or sys.argv[1] != "RLIMIT_AS", free
rng = np.random.default_rng(0)
X = rng.normal(size=(6000, 30))
machine = SVC(C=10.0, n_jobs=1).fit(X, X[:, 0] + 0.3 * rng.normal(size=6000) > 0)
assert machine.report_.converged, machine.report_
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux")
def test_a_fit_stays_below_ulimit():
    done = subprocess.run(
        [sys.executable, "-c", IN_A_LIMITED_PROCESS, "RLIMIT_AS"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
