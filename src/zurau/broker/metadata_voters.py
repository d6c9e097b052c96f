"""Who shall vote on the metadata: one, three or five of the brokers that are there.

Never two or four, which survive no more failures and stop at more. Who votes goes on voting, also while it is away: to
take its vote would be to bear one failure less. It is gone for good when its broker has another directory now, or when
it has been away for long and another broker can take its place.
"""

from __future__ import annotations

from zurau.ids import BrokerId, ReplicaId
from zurau.machines.controller.image import ClusterImage
from zurau.replica.core.membership import Voters

METADATA_VOTERS_MAX = 5


class MetadataVoters:
    """Told the image again and again, it remembers since when brokers have been away."""

    def __init__(self, replace_after_ms: int) -> None:
        self._replace_after_ms = replace_after_ms
        self._away_since_ms: dict[BrokerId, float] = {}

    def wanted(self, leader: ReplicaId, voters: Voters, image: ClusterImage, now_ms: float) -> Voters:
        """Who shall vote, of those that do and those that could."""
        self._look_who_is_away(image, now_ms)
        names = {broker: known.metadata_replica for broker, known in image.brokers.items()}
        kept = [voter for voter in voters if names.get(voter.broker, voter) == voter and image.may_vote(voter.broker)]
        could = [each for broker, each in names.items() if broker not in self._away_since_ms and image.may_vote(broker)]
        joining = sorted(each for each in could if each not in kept)
        gone = [voter for voter in kept if self._is_gone(voter.broker, now_ms)][: len(joining)]
        kept = [voter for voter in kept if voter not in gone]
        joining = joining[: max(0, METADATA_VOTERS_MAX - len(kept))]
        if joining and (len(kept) + len(joining)) % 2 == 0:
            joining.pop()
        if len(kept) < len(voters) and len(kept) % 2 == 0 and not joining:
            # One may vote no more and nobody takes its place: of two the leader alone is left, of four three.
            kept = sorted(kept, key=lambda voter: voter != leader)[:-1]
        return tuple(sorted([*kept, *joining]))

    def _look_who_is_away(self, image: ClusterImage, now_ms: float) -> None:
        away = [broker for broker, known in image.brokers.items() if known.is_fenced]
        self._away_since_ms = {broker: self._away_since_ms.get(broker, now_ms) for broker in away}

    def _is_gone(self, broker: BrokerId, now_ms: float) -> bool:
        since_ms = self._away_since_ms.get(broker)
        return since_ms is not None and now_ms >= since_ms + self._replace_after_ms
