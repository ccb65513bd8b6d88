"""Write files so that, whatever happens, either the old or the new content is there, whole."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Literal


@contextmanager
def atomic_write(path: str | os.PathLike[str], mode: Literal["w", "wb"] = "w") -> Iterator[IO[Any]]:
    """Open a file to be written as a whole or not at all.

    The text goes to a new file in the same folder, which takes the name of the old one only when everything
    is safely on the disk. An exception in between, a full disk or a crash leave the old file as it was; a
    killed process leaves the unfinished new file behind, under a name that starts with a dot and ends in
    ``.tmp``. Links are followed. The unfinished file has the old one's permissions from its first byte on. Devices
    and pipes are written directly.

    Parameters
    ----------
    path : path
        The file to write.
    mode : "w" or "wb"
        Text (UTF-8, line feeds as they are) or bytes.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with atomic_write(folder / "model") as file:
    ...     _ = file.write("kernel_type rbf")
    >>> (folder / "model").read_text()
    'kernel_type rbf'
    """
    if mode not in ("w", "wb"):
        raise ValueError(f"mode must be 'w' or 'wb', got {mode!r}")
    text: dict[str, Any] = {} if mode == "wb" else {"encoding": "utf-8", "newline": ""}
    target = Path(os.path.realpath(path))
    permissions: int | None = None
    with suppress(FileNotFoundError):
        status = target.stat()
        permissions = stat.S_IMODE(status.st_mode)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(f"cannot write to {os.fspath(path)}: it is a folder")
        if not stat.S_ISREG(status.st_mode):
            with open(target, mode, **text) as file:
                yield file
            return
    draft = target.with_name(f".{target.name[:40]}.{secrets.token_hex(8)}.tmp")
    try:
        opener = None if permissions is None else _private
        file = open(draft, mode.replace("w", "x"), opener=opener, **text)  # noqa: SIM115 - closed by the next block
    except OSError as error:
        reason = f"cannot write beside it ({error.strerror})"
        raise OSError(error.errno, reason, os.fspath(path)) from error
    try:
        with file:
            if permissions is not None:
                os.chmod(draft, permissions)
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(draft)
        raise
    _sync_folder(target.parent)


def _private(path: str, flags: int) -> int:
    """Open a new file that nobody else can read until it has the permissions of the old one."""
    return os.open(path, flags, stat.S_IRUSR | stat.S_IWUSR)


def _sync_folder(folder: Path) -> None:
    """Make a new name survive a power cut, where the system offers that."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
