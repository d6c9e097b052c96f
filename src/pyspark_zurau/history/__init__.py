"""Records that a topic no longer has, read from the lake that the archive pipeline has put them into.

A record has its place by partition and offset, in the topic and in the lake alike. So whoever reads a range of offsets
takes what the topic has from the topic, and what retention took away from the lake: each record once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark_zurau.history.history import History


def open_history(location: str) -> History:
    """Imported when it is wanted: Arrow's files bring pandas along, half a second for each Python process of Spark."""
    from pyspark_zurau.history.history import History

    return History.at(location)
