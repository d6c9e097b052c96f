"""What an operator may turn about consumer groups."""

from __future__ import annotations

from dataclasses import dataclass

from zurau.settings import DAY_MS, INT32_MAX, INT64_MAX, KIB, MIB, MINUTE_MS, SECOND_MS, setting


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """Consumer groups and their committed offsets."""

    #: Kafka waits 3 s. Most groups here live on a laptop or in a test, where three seconds before the first record
    #: are felt every time; a tenth still gathers members that start together, and latecomers only cost a rebalance.
    initial_rebalance_delay_ms: int = setting(
        100,
        "group.initial.rebalance.delay.ms",
        at_least=0,
        at_most=INT32_MAX,
        doc="How long an empty group waits for more members after the first one joined.",
    )
    session_timeout_min_ms: int = setting(
        6 * SECOND_MS,
        "group.min.session.timeout.ms",
        at_least=1,
        at_most=INT32_MAX,
        doc="The shortest session timeout that a member may ask for.",
    )
    session_timeout_max_ms: int = setting(
        30 * MINUTE_MS,
        "group.max.session.timeout.ms",
        at_least=1,
        at_most=INT32_MAX,
        doc="The longest session timeout that a member may ask for.",
    )
    group_size_max: int = setting(
        INT32_MAX, "group.max.size", at_least=1, at_most=INT32_MAX, doc="How many members one group may have."
    )
    #: Kafka bounds it by the size of a record, which is a megabyte by default.
    group_bytes_max: int = setting(
        4 * MIB,
        "zurau.group.max.bytes",
        at_least=KIB,
        at_most=INT32_MAX,
        doc="What the members of one group may say about themselves in all, and what may be assigned to them.",
    )
    groups_memory_bytes_max: int = setting(
        64 * MIB,
        "zurau.groups.memory.max.bytes",
        at_least=MIB,
        at_most=INT64_MAX,
        doc="Memory for members and offsets in one partition of the groups' topic, about. Past it, joining and "
        "committing are refused for the time being.",
    )
    offset_metadata_bytes_max: int = setting(
        4 * KIB,
        "offset.metadata.max.bytes",
        at_least=0,
        at_most=INT32_MAX,
        doc="The longest note (in UTF-8) that may be committed with an offset.",
    )
    offsets_retention_minutes: int = setting(
        7 * DAY_MS // MINUTE_MS,
        "offsets.retention.minutes",
        at_least=1,
        at_most=INT32_MAX,
        doc="How long offsets are kept once their group is empty, or since the last commit if it never had members.",
    )
    offsets_check_interval_ms: int = setting(
        10 * MINUTE_MS,
        "offsets.retention.check.interval.ms",
        at_least=1,
        at_most=INT32_MAX,
        doc="How often expired offsets and empty groups without offsets are looked for.",
    )

    @property
    def offsets_retention_ms(self) -> int:
        return self.offsets_retention_minutes * MINUTE_MS
