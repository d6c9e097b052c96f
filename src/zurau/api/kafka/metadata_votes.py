"""Who may vote on the metadata, as AddRaftVoter and RemoveRaftVoter change it.

Which brokers vote is seen to by the cluster itself (`broker/voter_changes.py`); what can be asked for is that a broker
be one of those that may, or not. The answer comes when that is written; the vote follows when it safely can.
"""

from __future__ import annotations

from zurau.api.kafka.call import Call
from zurau.errors import Refused
from zurau.ids import BrokerId
from zurau.machines.controller.commands import AlterConfigs, ConfigEdit, ConfigOperation, ResourceType
from zurau.machines.controller.dynamic import METADATA_VOTE
from zurau.wire.kafka.error_codes import ErrorCode


async def allow_vote(call: Call, cluster_id: str | None, voter_id: int, directory_id: bytes, *, may_vote: bool) -> None:
    """Raises `Refused`."""
    broker = call.broker
    if cluster_id is not None and cluster_id != broker.cluster_id:
        raise Refused(ErrorCode.INCONSISTENT_CLUSTER_ID, f"this is cluster {broker.cluster_id}")
    known = broker.image.brokers.get(BrokerId(voter_id))
    if known is None or known.directory_id != directory_id:
        code = ErrorCode.INVALID_REQUEST if may_vote else ErrorCode.VOTER_NOT_FOUND
        raise Refused(code, f"there is no broker {voter_id} with that directory")
    if may_vote and broker.image.may_vote(known.broker_id):
        raise Refused(ErrorCode.DUPLICATE_VOTER, f"broker {voter_id} may vote already")
    if not may_vote and not any(
        broker.image.may_vote(other) for other in broker.image.brokers if other != known.broker_id
    ):
        raise Refused(ErrorCode.INVALID_REQUEST, "it is the only one that may vote")
    operation = ConfigOperation.DELETE if may_vote else ConfigOperation.SET
    edit = ConfigEdit(METADATA_VOTE, operation, None if may_vote else "false")
    await broker.controller.ask(AlterConfigs(ResourceType.BROKER, str(voter_id), [edit]))
