"""How much memory the content of one file may take.

A megabyte on the disk can unfold to gigabytes, by compression or by short lines. What readers keep is counted
while they read, and the first piece too many is an error, not an exhausted computer.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from hinge.io.svmlight.errors import DataFileError
from hinge.runtime.memory import free_bytes

#: Environment variable with another limit, in megabytes.
VARIABLE = "HINGE_FILE_MEMORY"

# The other half is for what is made of the data.
_SHARE = 0.5

_MEGABYTE = 2**20


def most_bytes() -> tuple[int, str]:
    """Return the limit in bytes, and the words that say where it comes from.

    Raises
    ------
    DataFileError
        The environment variable does not hold a positive number.
    """
    text = os.environ.get(VARIABLE)
    if not text:
        return int(_SHARE * free_bytes()), "half of the memory that is free"
    try:
        limit = float(text) * _MEGABYTE
        if not 0 < limit < 2**63:
            raise ValueError
    except ValueError:
        raise DataFileError(f"{VARIABLE} must be a positive number of megabytes, got {text!r}") from None
    return int(limit), VARIABLE


class Budget:
    """Counts what is kept of a file.

    Parameters
    ----------
    path : str
        The file, for the error.
    make_error : callable
        Makes the error of a message and a path.

    Examples
    --------
    >>> import os
    >>> os.environ["HINGE_FILE_MEMORY"] = "1"
    >>> budget = Budget("data")
    >>> budget.keep(2**19)
    >>> try:
    ...     budget.keep(2**20)
    ... except DataFileError as error:
    ...     print(error)
    data: what it holds takes more than 1 MB of memory (HINGE_FILE_MEMORY); to read it all the same, set \
HINGE_FILE_MEMORY to more megabytes
    >>> del os.environ["HINGE_FILE_MEMORY"]
    """

    def __init__(self, path: str, make_error: Callable[[str, str], Exception] = DataFileError) -> None:
        self.path, self.make_error = path, make_error
        self.limit, self.reason = most_bytes()
        self.kept = 0

    def keep(self, n_bytes: int) -> None:
        """Count memory that stays in use; raise the error if it is too much."""
        self.lend(n_bytes)
        self.kept += n_bytes

    def lend(self, n_bytes: int) -> None:
        """Raise the error if there is no room for so much beside what is kept."""
        if self.kept + n_bytes > self.limit:
            raise self.error()

    def error(self) -> Exception:
        """Return the error that says what the limit is, and how to raise it."""
        megabytes = f"{self.limit / _MEGABYTE:.{0 if self.limit >= _MEGABYTE else 3}f}"
        return self.make_error(
            f"what it holds takes more than {megabytes} MB of memory ({self.reason}); "
            f"to read it all the same, set {VARIABLE} to more megabytes",
            self.path,
        )
