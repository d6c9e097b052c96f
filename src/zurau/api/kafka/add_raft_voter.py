"""AddRaftVoter: let a broker vote on the metadata again."""

from __future__ import annotations

from zurau.api.kafka.call import Call
from zurau.api.kafka.metadata_votes import allow_vote
from zurau.errors import Refused
from zurau.wire.kafka.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse


async def handle(request: AddRaftVoterRequest, call: Call) -> AddRaftVoterResponse:
    try:
        await allow_vote(call, request.cluster_id, request.voter_id, request.voter_directory_id, may_vote=True)
    except Refused as refused:
        return AddRaftVoterResponse(error_code=refused.code, error_message=refused.message)
    return AddRaftVoterResponse()
