"""The toy: a page on this computer where points are drawn with the mouse and machines retrain while they move.

``hinge toy`` on the command line, or from Python:

>>> from hinge.toy import serve
>>> serve(port=0, open_browser=False, forever=False)  # doctest: +SKIP
"""

from hinge.toy.server import serve

__all__ = ["serve"]
