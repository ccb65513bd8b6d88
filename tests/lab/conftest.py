"""The laboratory is tested on the random problems of the core's certificate tests."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent / "certificates"))
