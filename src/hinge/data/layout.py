"""How many samples and values are worked on at once, so that they stay where the processor finds them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Layout:
    """Sizes of tiles, panels and pieces of data. None changes an answer beyond rounding.

    Attributes
    ----------
    flat_tile : (int, int)
        Rows and columns of a tile of kernel values. Its float32 values take half a megabyte: they stay in the
        second-level cache of any current processor while the kernel function runs over them.
    tall_tile : (int, int)
        The same from ``many_features`` on, where nearly all time goes into matrix products. They want more rows:
        BLAS rearranges the columns for every product anew.
    few_features : int
        Up to this many a matrix product costs more than its arithmetic, and differences are summed up instead.
    many_features : int
        From this many on zeros are worth skipping, and matrix products take nearly all time.
    few_rows : int
        Up to this many rows a matrix product has nothing to be fast with.
    small_product : int
        Multiply-adds of a product with few rows. BLAS has a way for those that spares it from rearranging the
        columns first: two rows of MNIST take half the time.
    whole_rows : int
        Rows worked on together where each is read as a whole. Partial sums, mostly in single precision, run
        over them before they join a double-precision total; decisions and k(x, x) are found for as many at once.
    sparse_rows : int
        Most samples in a panel of sparse ones; this many sums stay in the first-level cache.
    sparse_values : int
        Values that a panel of sparse samples has at most if that can be helped: the second-level cache again.
    batch_bytes : int
        Bytes of panels that are laid out before threads begin with them.
    few_samples : int
        Up to this number of samples in shards are copied to whoever works on them: their kernel values take less
        time than a question.
    kept_near : int
        Copies that are kept of samples in shards, in such numbers: what working sets of some rounds have in
        common.
    values_at_once : int
        Kernel values that a shard is asked for at a time, a second or two's worth: so long may it be busy with
        what nobody wants any more.
    window_bytes : int
        Bytes of a mapped file that are looked at together.
    resident_bytes : int
        Bytes of it that may stay in memory before they are let go.
    page_bytes : int
        Bytes around an address that the system may map when one of them is read: a large page.
    last_seconds : float
        How long a fit that was stopped waits for its support vectors, where shards have them.
    read_rows : int
        Rows converted at once while data is read, so that no second full copy ever exists.
    """

    flat_tile: tuple[int, int] = (128, 1024)
    tall_tile: tuple[int, int] = (512, 512)
    few_features: int = 12
    many_features: int = 128
    few_rows: int = 16
    small_product: int = 850_000
    whole_rows: int = 64
    sparse_rows: int = 192
    sparse_values: int = 1 << 20
    batch_bytes: int = 1 << 25
    few_samples: int = 4096
    kept_near: int = 4
    values_at_once: int = 1_000_000_000
    window_bytes: int = 1 << 20
    resident_bytes: int = 1 << 22
    page_bytes: int = 1 << 21
    last_seconds: float = 5.0
    read_rows: int = 4096


LAYOUT = Layout()
