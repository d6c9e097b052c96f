"""Counting to a majority. Pure arithmetic, kept apart so that it can be read in one breath."""

from __future__ import annotations

from collections.abc import Collection

from zurau.ids import Offset


def majority(voter_count: int) -> int:
    """How many of the voters make a majority."""
    return voter_count // 2 + 1


def committed_offset(stored: Collection[Offset]) -> Offset:
    """The offset that a majority has stored, given how far each voter has."""
    return sorted(stored)[len(stored) - majority(len(stored))]
