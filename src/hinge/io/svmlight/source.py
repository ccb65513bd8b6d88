"""Where data text comes from: plain and compressed files, standard input; cut into blocks of whole lines."""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import lzma
import os
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, BinaryIO, cast

import numpy as np

from hinge.io.budget import Budget
from hinge.io.svmlight.errors import DataFileError
from hinge.io.svmlight.numbers import PADDING, Text
from hinge.io.svmlight.parse import last_line_end

Source = str | os.PathLike[str] | BinaryIO

# Small enough for a block and its numbers to stay in the cache, large enough to make Python's part small.
BLOCK_BYTES = 2**21

# A file without line ends would otherwise be read into memory whole, and it may be endless.
LONGEST_LINE = 2**28

# What xz's own strongest preset needs; beyond it a file's dictionary has to fit the budget.
_MEMORY_FOR_XZ = 2**27

# Bytes that a byte of a line may take: the line itself while it grows, and its indices and values.
_BYTES_A_BYTE = 6

_MAGIC = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00")
_LONGEST_MAGIC = 6
_DAMAGE = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LINE_FEED = ord("\n")


class LineTooLongError(Exception):
    """The next line exceeds `LONGEST_LINE`."""


class _Joined(io.RawIOBase):
    """A stream whose first bytes have been read already, put back together."""

    def __init__(self, head: bytes, rest: BinaryIO) -> None:
        self._head, self._rest = head, rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self._head:
            n = min(len(buffer), len(self._head))
            buffer[:n], self._head = self._head[:n], self._head[n:]
            return n
        return _read_into(self._rest, memoryview(buffer))


class _Xz(io.RawIOBase):
    """A stream out of xz's streams. Unlike `lzma.open` it gives a file's word about memory no credit."""

    def __init__(self, file: BinaryIO, budget: Budget) -> None:
        self._file, self._budget = file, budget
        self._decoder = self._new_decoder()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while True:
            packed = b""
            if self._decoder.eof:
                packed = self._decoder.unused_data.lstrip(b"\0")  # streams may have zeros between them
                while not packed:
                    piece = self._file.read(BLOCK_BYTES // 8)
                    if not piece:
                        return 0
                    packed = piece.lstrip(b"\0")
                self._decoder = self._new_decoder()
            elif self._decoder.needs_input and not (packed := self._file.read(BLOCK_BYTES // 8)):
                raise EOFError("it ends in the middle of a stream")
            piece = self._unpack(packed, len(buffer))
            if piece:
                buffer[: len(piece)] = piece
                return len(piece)

    def _new_decoder(self) -> lzma.LZMADecompressor:
        return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=max(self._budget.limit, _MEMORY_FOR_XZ))

    def _unpack(self, packed: bytes, most: int) -> bytes:
        try:
            return self._decoder.decompress(packed, most)
        except lzma.LZMAError as error:
            if "limit exceeded" in str(error):
                raise self._budget.error() from error
            raise


def is_compressed(path: str) -> bool:
    """Whether a file is compressed, by its first bytes."""
    with open(path, "rb") as file:
        return file.read(_LONGEST_MAGIC).startswith(_MAGIC)


def _decompressed(file: BinaryIO, head: bytes, budget: Budget) -> BinaryIO | None:
    """Return the stream that ``file`` unfolds to, recognised by its first bytes; None if it is not compressed."""
    openers: tuple[Callable[[BinaryIO], Any], ...] = (gzip.open, bz2.open, lambda packed: _Xz(packed, budget))
    for magic, opener in zip(_MAGIC, openers, strict=True):
        if head.startswith(magic):
            return cast(BinaryIO, opener(cast(BinaryIO, io.BufferedReader(cast(Any, file), BLOCK_BYTES // 8))))
    return None


def _read_into(file: BinaryIO, view: memoryview) -> int:
    if isinstance(file, io.RawIOBase | io.BufferedIOBase):
        return file.readinto(view) or 0
    data = file.read(len(view))
    view[: len(data)] = data
    return len(data)


def _binary(file: Any) -> BinaryIO:
    file = getattr(file, "buffer", file)  # sys.stdin and files opened as text
    if not hasattr(file, "read") or isinstance(file, io.TextIOBase):
        raise TypeError(f"expected a path or a file opened in binary mode, got {type(file).__name__}")
    return cast(BinaryIO, file)


@contextmanager
def open_source(source: Source) -> Iterator[tuple[BinaryIO, str]]:
    """Open a path, ``"-"`` for standard input, or a binary file; give a stream of plain text and a name.

    Compression is recognised by the first bytes, whatever the name. Damaged compression is a `DataFileError`.
    """
    with ExitStack() as stack:
        if source == "-":
            if sys.stdin is None:  # closed before Python began
                raise OSError(errno.EBADF, "standard input is closed")
            raw, name = _binary(sys.stdin), "<stdin>"
        elif isinstance(source, str | os.PathLike):
            name = os.fspath(source)
            raw = stack.enter_context(open(name, "rb", buffering=0))
        else:
            raw = _binary(source)
            name = str(getattr(source, "name", "<file>"))
        head = bytearray(_LONGEST_MAGIC)
        del head[fill(raw, memoryview(head)) :]
        whole = cast(BinaryIO, _Joined(bytes(head), raw))
        if plain := _decompressed(whole, bytes(head), Budget(name)):
            whole = stack.enter_context(plain)
        try:
            yield whole, name
        except _DAMAGE as error:
            raise DataFileError(f"the compressed data is damaged or cut short ({error})", name) from error
        except OSError as error:
            if error.errno is not None:
                raise
            raise DataFileError(f"the compressed data is damaged ({error})", name) from error


def fill(file: BinaryIO, view: memoryview) -> int:
    """Read until ``view`` is full or the file ends; return the number of bytes read."""
    filled = 0
    while filled < len(view):
        n = _read_into(file, view[filled:])
        if n == 0:
            break
        filled += n
    return filled


def blocks(
    file: BinaryIO, budget: Budget, size: int = BLOCK_BYTES, bytes_a_byte: int = _BYTES_A_BYTE
) -> Iterator[tuple[Text, int]]:
    """Cut a stream into whole lines: arrays of bytes with padding, and their length without it.

    Every block ends with a line feed, the last one too. A line longer than ``size`` makes its block longer, as far
    as the budget has room for ``bytes_a_byte`` times as much.

    Raises
    ------
    LineTooLongError
        A line exceeds `LONGEST_LINE`.

    Examples
    --------
    >>> [bytes(text[:stop]) for text, stop in blocks(io.BytesIO(b"1 1:2\\n-1\\n+1 1:3"), Budget(""), size=10)]
    [b'1 1:2\\n-1\\n', b'+1 1:3\\n']
    """
    rest = np.empty(0, np.uint8)
    start = True
    ended = False
    while not ended:
        if len(rest) > LONGEST_LINE:
            raise LineTooLongError
        room = len(rest) + max(size, len(rest))  # doubles while no line ends
        if len(rest) >= size:
            budget.lend(bytes_a_byte * room)
        text = np.empty(room + 1 + PADDING, np.uint8)
        text[: len(rest)] = rest
        filled = len(rest) + fill(file, text.data[len(rest) : room])
        ended = filled < room
        if start and bytes(text[:3]) == _BYTE_ORDER_MARK and filled >= 3:
            text, filled = text[3:], filled - 3
        if ended and filled and text[filled - 1] != _LINE_FEED:
            text[filled] = _LINE_FEED
            filled += 1
        cut = filled if ended else last_line_end(text[:filled])
        start = False
        rest = text[cut:filled]
        if cut:
            yield text, cut
