"""What a deciding function returns: the records that make the answer true, in order, and the answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from zurau.machines.controller.records import MetadataRecord


class Decided(NamedTuple):
    records: Sequence[MetadataRecord] = ()
    reply: Any = None
