"""Python source under construction, and its compilation."""

from __future__ import annotations

import linecache
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class Source:
    """Lines of one module of generated code, and the names that they use."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {}
        self._lines: list[str] = []
        self._indent = 0
        self._serial = 0

    def line(self, text: str) -> None:
        self._lines.append("    " * self._indent + text)

    @contextmanager
    def block(self, opening: str) -> Iterator[None]:
        self.line(opening)
        self._indent += 1
        yield
        self._indent -= 1

    def fresh(self, stem: str) -> str:
        """A variable that nothing else uses."""
        self._serial += 1
        return f"{stem}_{self._serial}"

    def codec_of(self, letters: list[str], method: str) -> str:
        """The name of a method of the `struct.Struct` with these letters."""
        readable = "_".join({"?": "bool", "16s": "uuid"}.get(letter, letter) for letter in letters)
        name = f"{method}_{readable}"
        self.names[name] = getattr(struct.Struct(">" + "".join(letters)), method)
        return name

    def compile(self, title: str, function: str) -> Callable[..., Any]:
        """Run the module and return one of its functions. Tracebacks show the generated lines."""
        text = "\n".join(self._lines) + "\n"
        filename = f"<{title}>"
        linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
        exec(compile(text, filename, "exec"), self.names)  # noqa: S102 - made from our own declarations only
        compiled: Callable[..., Any] = self.names[function]
        return compiled
