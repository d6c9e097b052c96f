"""Bugs planted in the controller, in what brokers make of its word, and in their directories. See mutations.py."""

from __future__ import annotations

from typing import Any

import msgspec
from planted import held

from zurau.broker import room as room_module
from zurau.broker.cluster_view import ClusterView
from zurau.broker.directories import Directories
from zurau.broker.metadata_log import MetadataLog
from zurau.broker.room import Room
from zurau.ids import BrokerId, PartitionId, ReplicaId, TopicId
from zurau.machines.controller import brokers as brokers_module
from zurau.machines.controller import in_sync as controller_module
from zurau.machines.controller.changes import Change
from zurau.machines.controller.image import PartitionImage
from zurau.machines.controller.in_sync import Drafts
from zurau.machines.controller.sessions import BrokerSessions
from zurau.partition.replay import Replay
from zurau.partition.runtime import MachineRuntime
from zurau.partition.snapshots import Snapshot
from zurau.pending import Pending
from zurau.replica.quorum import leader as leader_module


def accept_any_state(image: Any, command: Any) -> PartitionImage:
    known = image.partition(command.partition)
    return _check_current(image, msgspec.structs.replace(command, partition_epoch=known.partition_epoch))


def anybody_may_lead(self: Drafts, key: PartitionId, partition: PartitionImage) -> ReplicaId | None:
    able = [each for each in partition.replica_ids if self.is_able(key, partition, each)]
    return max(able, default=None)


def may_always_join(*_: Any) -> bool:
    return True


def shrink_to_nobody(self: Drafts, key: PartitionId, broker: BrokerId) -> None:
    """Whoever left last leads on its own, whatever it has."""
    known = self[key]
    rest = tuple(each for each in known.replica_ids if each.broker != broker)[:1]
    if any(each.broker == broker for each in known.in_sync):
        self.put(key, in_sync=rest, leader=None)


def first_by_name(self: Drafts, key: PartitionId, partition: PartitionImage) -> ReplicaId | None:
    return min((each for each in partition.in_sync if self.is_able(key, partition, each)), default=None)


def let_the_failed_lead(self: Drafts, key: PartitionId, broker: BrokerId) -> None:
    known = self[key]
    if known.leader is None or known.leader.broker != broker or broker not in self._active:
        _leave(self, key, broker)


def jump_without_its_records(self: ClusterView, snapshot: Snapshot) -> list[Change]:
    return _jump(self, snapshot._replace(records=()))


async def read_back_once(self: MachineRuntime[Any]) -> tuple[Any, Replay]:
    """Whatever happens to the log meanwhile."""
    machine = self._make_machine()
    replay = Replay(self.partition, machine.apply)
    replay.restore(self._snapshot())
    while replay.next_offset < self.partition.log.end_offset:
        await replay.catch_up_in_turns(self.partition.log.end_offset, self._workers, self._turns)
    return machine, replay


def lead_on_whatever_was_loaded(self: MetadataLog, loaded: Pending[None]) -> None:
    if loaded.error is None:
        self.on_controller()


def remove_what_is_not_named(self: Directories, directory: str, topic_id: TopicId) -> None:
    self.delete([directory], topic_id)


def _nothing(*_: Any, **__: Any) -> None:
    pass


def _always(*_: Any) -> bool:
    return True


def _never(*_: Any) -> bool:
    return False


_leave = Drafts.leave
_check_current = controller_module._check_current
_jump = ClusterView.jump


CONTROLLER_MUTATIONS = (
    held(
        "somebody who is not in sync is elected",
        "unit/machines/controller/test_brokers.py::test_leaders_move_away_before_a_broker_may_stop",
        (Drafts, "choose_leader", anybody_may_lead),
    ),
    held(
        "who left last leads, whatever it has",
        "unit/machines/controller/test_brokers.py::test_leaders_move_away_before_a_broker_may_stop",
        (Drafts, "leave", shrink_to_nobody),
    ),
    held(
        "an unclean restart stays in sync",
        "unit/machines/controller/test_in_sync.py::test_when_the_last_one_has_lost_something_whoever_left_before_it_takes_its_place",
        (Drafts, "lose", _nothing),
    ),
    held(
        "a proposal for an older state is accepted",
        "unit/machines/controller/test_in_sync.py::test_a_proposal_that_does_not_fit_the_partition_is_refused[partition]",
        (controller_module, "_check_current", accept_any_state),
    ),
    held(
        "a broker that was restarted since is taken in",
        "unit/machines/controller/test_in_sync.py::test_a_broker_that_was_restarted_since_does_not_join",
        (controller_module, "_may_join", may_always_join),
    ),
    held(
        "an old copy is not found out",
        "unit/machines/controller/test_brokers.py::test_another_directory_cannot_take_the_id_of_a_broker_that_is_alive",
        (brokers_module, "_check_incarnation", _nothing),
    ),
    held(
        "the first by name leads, however much it leads",
        "unit/machines/controller/test_in_sync.py::test_partitions_that_are_added_get_leaders_too",
        (Drafts, "choose_leader", first_by_name),
    ),
    held(
        "a replica that failed leads on",
        "unit/machines/controller/test_in_sync.py::test_a_replica_that_its_broker_calls_failed_does_not_join",
        (Drafts, "leave", let_the_failed_lead),
        (BrokerSessions, "works", _always),
    ),
    held(
        "a snapshot comes without its metadata",
        "unit/broker/test_snapshot_transfer.py::test_a_broker_that_was_away_for_long_is_sent_a_snapshot_of_the_metadata[97]",
        (ClusterView, "jump", jump_without_its_records),
    ),
    held(
        "a load is overtaken by a snapshot",
        "unit/partition/test_runtime.py::test_a_snapshot_that_takes_the_place_of_the_log_while_it_is_read_is_read_instead",
        (MachineRuntime, "_read_back", read_back_once),
    ),
    held(
        "a controller that cannot read its log leads on",
        "unit/broker/test_failover.py::test_who_is_elected_controller_and_cannot_read_the_metadata_stops",
        (MetadataLog, "_controller_loaded", lead_on_whatever_was_loaded),
    ),
    held(
        "a voter leaves whom the rest needs",
        "unit/replica/test_quorum_replica.py::test_a_voter_stays_whom_the_others_need_because_one_of_them_is_dead",
        (leader_module, "could_commit", _always),
    ),
    held(
        "a full disk keeps its leaders",
        "unit/broker/test_leaders_move.py::test_who_has_no_room_lets_another_lead[quorum]",
        (Room, "is_missing", _nothing),
    ),
    held(
        "a follower without room is waited for",
        "unit/broker/test_leaders_move.py::test_who_has_no_room_lets_another_lead[isr]",
        (Room, "yields", _never),
    ),
    held(
        "room is offered where there is none",
        "unit/broker/test_leaders_move.py::test_when_nobody_has_room_what_there_is_can_be_read[quorum]",
        (room_module, "ROOM_BYTES", 0),
    ),
    held(
        "what the metadata does not name is removed",
        "simulation/test_disk_faults.py::test_data_that_a_cut_metadata_log_does_not_explain_is_put_aside_and_a_new_topic_begins_empty",
        (Directories, "put_aside", remove_what_is_not_named),
    ),
)
