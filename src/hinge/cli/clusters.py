"""What ``--scheduler`` adds to commands: data files that a cluster's workers read, and words for its faults."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from hinge.arrays import Vector
from hinge.cli.data import DataFile, explained, leave
from hinge.cli.options import Parsed
from hinge.cli.parameters import Parameters
from hinge.io import LibsvmModel
from hinge.io.models.libsvm_model import SVM_TYPES
from hinge.io.tables import READERS, ending

if TYPE_CHECKING:
    from hinge.dask.sessions import Session

# How a model file begins, whichever machine it holds.
_MODEL = b"svm_type"

_CANNOT_OPEN = "can't open input file"


def refuse_training(parsed: Parsed, parameters: Parameters, model_path: str) -> None:
    """Leave if a cluster cannot train this; or if the last file is one of the data files, by mistake."""
    is_of_rows = parameters.type_number in (SVM_TYPES.index("svdd"), SVM_TYPES.index("ranking"))
    if parsed["folds"] is not None or parameters.probability or is_of_rows or parameters.kernel(1).is_precomputed:
        leave("--scheduler trains one model on features: without -v, -b 1, -t 4, -s 5 and -s 6")
    if parsed["memory"] is not None or parameters.solver == "smo":
        leave("--scheduler goes with neither --memory nor --solver smo")
    if os.path.isfile(model_path) and os.path.getsize(model_path):
        with open(model_path, "rb") as file:
            if file.read(len(_MODEL)) != _MODEL:
                leave(f"{model_path} is there and is no model: name the model file behind the data files")


@contextmanager
def on_cluster(command: str, parsed: Parsed, files: Sequence[str]) -> Iterator[Session]:
    """Connect to the cluster of ``--scheduler``; leave with a sentence where it fails."""
    for path in files:
        if path == "-" or ending(path) in READERS:
            leave(f"--scheduler reads files of LIBSVM's text, which workers find by name, and not {path}")
    if parsed["label"] is not None:
        leave("--label is for tables, which --scheduler does not read")
    try:
        from hinge.dask.sessions import session

        with session(parsed["scheduler"]) as cluster:
            yield cluster
    except CancelledError:
        leave(f"hinge {command}: the connection to the scheduler {parsed['scheduler']} is lost")
    except (ConnectionError, ModuleNotFoundError, RuntimeError) as error:
        leave(f"hinge {command}: {error}")


def samples_on(cluster: Session, files: Sequence[str]) -> DataFile:
    """Have the workers read data files, or say what is wrong with these and leave."""
    with explained(", ".join(files), _CANNOT_OPEN):
        try:
            return DataFile(*cluster.samples_of(files))
        except MemoryError as error:  # of a worker
            return leave(str(error))


def decided_on(cluster: Session, files: Sequence[str], model: LibsvmModel) -> Iterator[tuple[Vector, Vector]]:
    """Have the workers read data files and decide their samples; yield labels and decisions."""
    from hinge.dask.sessions import decide_part

    if model.kernel.is_precomputed or model.svm_type == "ranking":
        leave("--scheduler is for models on features that are no rankings")
    with explained(", ".join(files), _CANNOT_OPEN):
        for labels, decisions in cluster.decided(files, model, decide_part):
            yield np.asarray(labels), decisions
