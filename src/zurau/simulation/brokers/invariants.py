"""What must be true of whole brokers, by name. A `Violation` says which one is not, and what was seen."""

from __future__ import annotations

from typing import NoReturn

from zurau.simulation.brokers.checkers.checks import MEANINGS
from zurau.simulation.searching import Violation

INVARIANTS = MEANINGS | {
    "AcknowledgedStays": "What was acknowledged with acks=all, or read by a consumer, is there for ever.",
    "AcknowledgedIsCommitted": "What is acknowledged with acks=all is below a high watermark at that moment.",
    "OneValueAtAnOffset": "An offset holds one record: whoever reads it again, or is acknowledged, is told the same.",
    "NoneTwice": "A record that was sent once, or again and again by an idempotent producer, is there once.",
    "OrderIsKept": "Records of one idempotent producer in one partition are in the order in which it made them.",
    "RetriesAreTaken": "An idempotent producer can always repeat the oldest of what is not acknowledged.",
    "NoGaps": "Offsets follow each other, unless compaction or deletion took some away.",
    "OnlyWhatIsCommitted": "Nobody reads at or above the high watermark.",
    "HighWatermarkNeverGoesBack": "A high watermark that was told or seen is never followed by a lower one.",
    "CommittedLogNeverChanges": "Below the high watermark, a log's bytes are the same at all times and everywhere.",
    "CoreKnowsItsLog": "What a replica's core believes of its log is so, whenever all that it said is done.",
    "EpochsNeverGoBack": "A start leads in an epoch in which nothing was written before.",
    "OneLeaderPerEpoch": "Nobody leads in an epoch in which somebody else led; nor the same one again after a restart.",
    "LeadersAreThere": "Whom the controller names as a leader is registered, not fenced, and in sync.",
    "CommittedOffsetsNeverGoBack": "A group finds the offset that it committed last.",
    "OneOwner": "A partition has one owner in a generation of a group, and no commit of an older one is taken.",
    "WhatIsShownStays": "A topic, a partition or a setting that a client was shown is there until somebody removes it.",
    "OldTopicsStayGone": "A topic that is created again under an old name has none of the old one's records.",
    "DeletedStaysDeleted": "Where a log was told to start it starts, and never again before.",
    "LastOfEachKeyStays": "Compaction keeps the last record of each key.",
    "NoFalseDamage": "Nothing is called damaged while the disk keeps what it promised.",
    "NothingUnexpected": "No error comes out of the broker that is not meant for a client.",
    "BecomesWhole": "When faults end, every broker serves, and everything can be read and written.",
}


def broken(invariant: str, seen: str) -> NoReturn:
    assert invariant in INVARIANTS
    raise Violation(invariant, seen)


def require(holds: bool, invariant: str, seen: str) -> None:
    if not holds:
        broken(invariant, seen)
