"""Settings of a client in a file, as Java's clients and Kafka's tools keep them: `name=value`, one a line."""

from __future__ import annotations

import re
from pathlib import Path

from zurau.errors import SettingsError

_CONTINUED = re.compile(r"(?<!\\)(?:\\\\)*\\\n[ \t\f]*")
_SPLIT = re.compile(r"((?:\\.|[^\\=:\s])+)\s*[=:\s]\s*(.*)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}


def read_properties(path: Path) -> dict[str, str]:
    try:
        return parse_properties(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a text in UTF-8"
        raise SettingsError(f"{path}: {reason}") from error


def parse_properties(text: str) -> dict[str, str]:
    """A backslash at the end of a line goes on in the next; elsewhere it takes the meaning from what follows."""
    properties = {}
    for line in _CONTINUED.sub(lambda found: found.group().partition("\\\n")[0], text).splitlines():
        content = line.strip()
        if not content or content[0] in "#!":
            continue
        found = _SPLIT.fullmatch(content)
        name, value = found.groups() if found else (content, "")
        properties[_unescape(name)] = _unescape(value)
    return properties


def _unescape(text: str) -> str:
    return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found.group(1), found.group(1)), text)
