"""What a deciding function returns: the record that makes the answer true, if one is needed, and the answer."""

from __future__ import annotations

from typing import Any, NamedTuple

from zurau.machines.controller.records import MetadataRecord


class Decided(NamedTuple):
    record: MetadataRecord | None = None
    reply: Any = None
