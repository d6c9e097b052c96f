"""Other brokers for a partition, while it is in use (reassignment).

What is wanted is a list of brokers, the *target*. At first a partition has the replicas that it had and the new ones,
which fetch. In in-sync mode it is done when the new ones are in sync: then the rest leave, in one decision. Where
replicas elect their leader, that leader makes voters of the new ones and takes their vote from the rest, one at a time,
and says when that is committed. Only then are replicas removed: nobody who is still counted is ever missing. To cancel
is to have the old ones as target; another target may be given at any time.
"""

from __future__ import annotations

from zurau.errors import Refused
from zurau.ids import BrokerId
from zurau.machines.controller.commands import FinishReassignment, ReassignPartition
from zurau.machines.controller.decided import Decided
from zurau.machines.controller.image import ClusterImage, PartitionImage
from zurau.machines.controller.in_sync import Drafts
from zurau.wire.kafka.error_codes import ErrorCode


def reassign_partition(image: ClusterImage, drafts: Drafts, command: ReassignPartition) -> Decided:
    known = image.partition(command.partition)
    if known is None:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "there is no such partition")
    target = known.origin if command.replicas is None else _checked(image, known, command)
    if not target:
        raise Refused(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "it is not being reassigned")
    if target == (known.target or known.replicas):
        return Decided()
    drafts.retarget(command.partition, target, command.directory)
    drafts.settle()
    return Decided(drafts.records())


def _checked(image: ClusterImage, known: PartitionImage, command: ReassignPartition) -> tuple[BrokerId, ...]:
    replicas = tuple(map(BrokerId, command.replicas or ()))
    if len(set(replicas)) != len(replicas) or not replicas:
        raise _bad_assignment(f"{list(replicas)} is empty, or names a broker twice")
    if unknown := sorted(set(replicas) - set(image.brokers)):
        raise _bad_assignment(f"there is no broker {unknown[0]}")
    if not command.directory:
        raise Refused(ErrorCode.INVALID_REQUEST, "a replica's directory has a name")
    factor = len(known.origin or known.replicas)
    if not command.may_change_factor and len(replicas) != factor:
        raise Refused(ErrorCode.INVALID_REPLICATION_FACTOR, f"it has {factor} replicas, and would have {len(replicas)}")
    return replicas


def finish_reassignment(image: ClusterImage, drafts: Drafts, command: FinishReassignment) -> Decided:
    known = image.partition(command.partition)
    if known is None:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if known.partition_epoch != command.partition_epoch or not known.target or known.in_sync:
        raise Refused(ErrorCode.INVALID_UPDATE_VERSION, f"the partition is at epoch {known.partition_epoch}")
    if sorted(command.voters) != sorted(known.wanted_ids):
        raise Refused(ErrorCode.INVALID_REQUEST, "others vote than those that shall")
    drafts.finish(command.partition)
    return Decided(drafts.records())


def _bad_assignment(problem: str) -> Refused:
    return Refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)
