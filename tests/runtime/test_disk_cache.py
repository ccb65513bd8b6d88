"""Machine code is compiled once per machine, kept on disk, and not needed on disk."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import hinge

# Every solver and rule, storage, kernel and precision: what users can make the library compile.
EVERYTHING = """
import json, sys
from numba.core import event
from numba.core.dispatcher import Dispatcher

with event.install_recorder("numba:compile") as compilations:
    import numpy as np
    import scipy.sparse as sp
    from hinge import SVC, Gram, Kernel, Settings, certificate, solve
    from hinge.dual.formulations import c_svc, epsilon_svr, nu_svc
    from hinge.kernel.kernels import KERNELS
    from hinge.settings import RULES

    rng = np.random.default_rng(0)
    X = np.round(rng.uniform(size=(60, 3)), 2)
    y = np.where(X[:, 0] > 0.5, 1.0, -1.0)
    problems = [c_svc(y), c_svc(y, fit_intercept=False), nu_svc(y, nu=0.2), epsilon_svr(X[:, 1])]
    for precision in ("single", "double"):
        small = X.astype(np.float32)
        for rows in (X, small, sp.csr_array(X), sp.csr_array(small), np.round(X)):
            for name in KERNELS[:-1]:  # precomputed comes last
                gram = Gram(rows, Kernel(name), precision=precision)
                certificate(problems[0], gram, solve(problems[0], gram, Settings(solver="block")).beta)
        for problem in problems:
            gram = Gram(X, Kernel("rbf"), precision=precision)
            solve(problem, gram, Settings(solver="block"))
            for rule in RULES:
                solve(problem, gram, Settings(solver="smo", rule=rule))
    SVC().fit(X, y).predict(X)

functions = [f for m in list(sys.modules.values()) if getattr(m, "__name__", "").startswith("hinge")
             for f in vars(m).values() if isinstance(f, Dispatcher)]
stats = [f.stats for f in set(functions)]
print(json.dumps({
    "compiled": sorted({str(record.data["dispatcher"]) for _, record in compilations.buffer}),
    "hits": sum(sum(s.cache_hits.values()) for s in stats),
    "misses": sum(sum(s.cache_misses.values()) for s in stats),
}))
"""

ONE_FIT = """
import numpy as np
from hinge import SVC
X = np.array([[0.1], [0.9], [2.1], [2.9]])
print(SVC(kernel="linear", C=10.0).fit(X, [0, 0, 1, 1]).predict([[0.0], [3.0]]).tolist())
"""


def run(script, source=Path(hinge.__file__).parents[1], **environment):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA_")} | environment
    command = [sys.executable, "-W", "error", "-c", script]
    environment["PYTHONPATH"] = str(source)
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
def test_second_process_compiles_nothing():
    run(EVERYTHING)
    second = run(EVERYTHING)
    assert second["compiled"] == []
    assert second["misses"] == 0
    assert second["hits"] > 10


def without_cache_folders(tmp_path):
    """A copy of the package where no cache folder can be made, not even by the superuser."""
    package = Path(shutil.copytree(Path(hinge.__file__).parent, tmp_path / "site" / "hinge",
                                   ignore=shutil.ignore_patterns("__pycache__")))  # fmt: skip
    for folder in (package, *(p for p in package.rglob("*") if p.is_dir())):
        (folder / "__pycache__").write_text("a file, where a folder would have to be")
    return package.parent


@pytest.mark.slow
def test_read_only_install_works_without_any_writable_folder(tmp_path):
    site = without_cache_folders(tmp_path)
    nowhere = str(tmp_path / "site" / "hinge" / "__pycache__" / "home")  # below a file
    assert run(ONE_FIT, site, HOME=nowhere, XDG_CACHE_HOME=nowhere) == [0, 1]
    assert not list(site.rglob("*.nbi"))


@pytest.mark.slow
def test_read_only_install_keeps_its_code_in_the_users_cache(tmp_path):
    site = without_cache_folders(tmp_path)
    home = tmp_path / "home"
    home.mkdir()
    assert run(ONE_FIT, site, HOME=str(home), XDG_CACHE_HOME=str(home / "cache")) == [0, 1]
    assert list(home.rglob("*.nbi"))
