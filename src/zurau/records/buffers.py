"""Memory that is about to be filled: where that is compiled, it is not filled with zeros first."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["filled", "new_buffer"]


def pure_filled(size: int, fill: Callable[[memoryview], int]) -> bytes:
    """As many bytes, up to `size`, as `fill` says that it has put into the memory it is given."""
    view = memoryview(bytearray(size))
    return bytes(view[: fill(view)])


try:
    from zurau.records._walk import filled, new_buffer
except ImportError:  # nothing could be compiled where this was installed
    new_buffer = bytearray  # type: ignore[assignment]
    filled = pure_filled
