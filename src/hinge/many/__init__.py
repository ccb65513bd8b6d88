"""Very many small fits: searchlights, time points, thousands of problems of a hundred samples each."""

from hinge.many.evaluation import cross_validate_many, fit_many
from hinge.many.results import ManyFits, ManyScores
from hinge.many.searchlight import CrossValidated

__all__ = ["CrossValidated", "ManyFits", "ManyScores", "cross_validate_many", "fit_many"]
