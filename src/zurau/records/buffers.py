"""Memory that is about to be filled: where that is compiled, it is not filled with zeros first."""

from __future__ import annotations

__all__ = ["new_buffer"]

try:
    from zurau.records._walk import new_buffer
except ImportError:  # nothing could be compiled where this was installed
    new_buffer = bytearray  # type: ignore[assignment]
