"""Which topic names are lawful.

Kafka turns '.' into '_' in the names of its metrics, so two topics that differ only there would share them; it
refuses the second one, and so do we, or a topic that was made here could not be moved there.
"""

from __future__ import annotations

import re

from zurau.errors import Refused
from zurau.wire.kafka.error_codes import ErrorCode

OFFSETS_TOPIC = "__consumer_offsets"
METADATA_TOPIC = "__cluster_metadata"
NAME_CHARACTERS_MAX = 249

_INTERNAL = (OFFSETS_TOPIC, METADATA_TOPIC)
_LAWFUL = re.compile(r"[a-zA-Z0-9._-]+")


def is_internal(name: str) -> bool:
    """The broker keeps its own state there: clients may read it and nothing else."""
    return name in _INTERNAL


def is_lawful(name: str) -> bool:
    """Whether a topic can have this name."""
    return _problem_with(name) is None


def check_topic_name(name: str) -> None:
    """Raises `Refused` with INVALID_TOPIC_EXCEPTION when no topic can have this name."""
    if problem := _problem_with(name):
        raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, f"a topic name {problem}")


def check_not_internal(name: str) -> None:
    """Raises `Refused` for the broker's own topics, and for names that would collide with them.

    INVALID_REQUEST is what Kafka answers to whoever would create its metadata topic; an authorization error would
    send people looking for rights that nobody can have.
    """
    for internal in _INTERNAL:
        if collision_key(name) == collision_key(internal):
            raise Refused(ErrorCode.INVALID_REQUEST, f"{internal} belongs to the brokers and cannot be changed")


def collision_key(name: str) -> str:
    return name.replace(".", "_")


def _problem_with(name: str) -> str | None:
    if not name:
        return "cannot be empty"
    if name in (".", ".."):
        return f"cannot be {name!r}"
    if len(name) > NAME_CHARACTERS_MAX:
        return f"has at most {NAME_CHARACTERS_MAX} characters; this one has {len(name)}"
    if not _LAWFUL.fullmatch(name):
        return f"has only ASCII letters, digits, '.', '_' and '-'; {name[:80]!r} has others"
    return None
