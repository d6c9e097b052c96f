"""RemoveRaftVoter: let a broker vote on the metadata no more."""

from __future__ import annotations

from zurau.api.kafka.call import Call
from zurau.api.kafka.metadata_votes import allow_vote
from zurau.errors import Refused
from zurau.wire.kafka.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse


async def handle(request: RemoveRaftVoterRequest, call: Call) -> RemoveRaftVoterResponse:
    try:
        await allow_vote(call, request.cluster_id, request.voter_id, request.voter_directory_id, may_vote=False)
    except Refused as refused:
        return RemoveRaftVoterResponse(error_code=refused.code, error_message=refused.message)
    return RemoveRaftVoterResponse()
