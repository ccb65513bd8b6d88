"""Pictures of machines in scikit-learn's manner: ``from_estimator``, ``plot(ax=…)``, then ``ax_`` and ``figure_``.

Matplotlib is imported when a picture is drawn; the extra ``plot`` installs it. Colours are Okabe and Ito's, which
the colour-blind tell apart; markers and lines differ as well.
"""

from hinge.plot.boundary import DecisionBoundary
from hinge.plot.calibration import Calibration
from hinge.plot.convergence import Convergence
from hinge.plot.landscape import Landscape
from hinge.plot.margins import Margins
from hinge.plot.path import Path
from hinge.plot.tube import RegressionTube

__all__ = [
    "Calibration",
    "Convergence",
    "DecisionBoundary",
    "Landscape",
    "Margins",
    "Path",
    "RegressionTube",
]
