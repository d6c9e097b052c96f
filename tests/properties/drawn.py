"""The broker's constants as something that Hypothesis chooses; the simplest choice is the usual ones."""

from __future__ import annotations

from hypothesis import strategies as st

from zurau.simulation.constants import DRAWN, usual


def drawn_constants(*rooms: str) -> st.SearchStrategy[dict[str, int]]:
    """Some constants of these rooms with odd values; simplest is none at all."""
    chosen = [name for name in DRAWN if name.partition(".")[0] in rooms]
    return st.fixed_dictionaries({}, optional={name: _values(DRAWN[name], usual(name)) for name in chosen})


def _values(least: int, most: int) -> st.SearchStrategy[int]:
    powers = [1 << bits for bits in range(least.bit_length(), most.bit_length())]
    off_by_one = [power + more for power in powers for more in (-1, 0, 1) if least <= power + more <= most]
    return st.sampled_from([least, *off_by_one, most]) | st.integers(least, min(most, least + 100))
