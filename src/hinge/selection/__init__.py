"""Model selection: cross-validation, grids of parameters, leave-one-out, regularisation paths.

What the fits of a search have in common is computed once: comparisons of samples for the whole data set, kernel
values for each kernel, solutions from their neighbours. What is solved stays the same, and every fold ends with
its own certificate.
"""

from hinge.selection.bounds import XiAlpha, xi_alpha
from hinge.selection.engines.choose import run_units
from hinge.selection.job import Cell, Job, Unit, plan
from hinge.selection.leave_one_out import LeaveOneOut, leave_one_out
from hinge.selection.path import regularisation_path
from hinge.selection.search import Checkpoint, GridSearch
from hinge.selection.unit import evaluate_unit
from hinge.selection.validation import cross_validate

__all__ = [
    "Cell", "Checkpoint", "GridSearch", "Job", "LeaveOneOut", "Unit", "XiAlpha", "cross_validate", "evaluate_unit",
    "leave_one_out", "plan", "regularisation_path", "run_units", "xi_alpha",
]  # fmt: skip
