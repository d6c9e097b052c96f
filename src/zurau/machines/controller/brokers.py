"""Which brokers there are, and which of them are alive.

A broker registers at each start. Its directory id names the disk and its incarnation id the process, so a broker that
comes back with an empty disk is known for what it is: the same number, but nobody's replica. The offset of the
registration is its broker epoch: whatever it says later under an older one is not heard.

A decision's records are in such an order that the first few of them alone do no harm, should the rest be lost: replicas
leave their in-sync sets before their broker is registered anew or fenced, and lead after it is unfenced.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any

from zurau.errors import Refused
from zurau.ids import BrokerId, Epoch, Offset
from zurau.machines.controller.commands import (
    BrokerHeartbeat,
    BrokerHeartbeatReply,
    RegisterBroker,
    RenameReplica,
    ReserveBrokerId,
    UnregisterBroker,
)
from zurau.machines.controller.config_rules import ConfigRules
from zurau.machines.controller.decided import Decided
from zurau.machines.controller.features import check_registration, first_levels
from zurau.machines.controller.image import PEER_LISTENER, RESERVED_IDS_MAX, BrokerImage, ClusterImage
from zurau.machines.controller.in_sync import Drafts
from zurau.machines.controller.records import (
    NO_EPOCH,
    BrokerIdReserved,
    BrokerRegistrationChanged,
    BrokerUnregistered,
    MetadataRecord,
)
from zurau.machines.controller.sessions import BrokerSessions
from zurau.machines.controller.snapshot import broker_record
from zurau.machines.machine import OffsetOf
from zurau.settings import INT32_MAX
from zurau.wire.kafka.error_codes import ErrorCode

DIRECTORY_ID_BYTES = 16


def active_brokers(image: ClusterImage) -> set[BrokerId]:
    return {broker.broker_id for broker in image.brokers.values() if broker.is_active}


def reserve_broker_id(image: ClusterImage, sessions: BrokerSessions, command: ReserveBrokerId, now_ms: int) -> Decided:
    """An id for a directory that had none. Asked again, the answer is the same."""
    if not image.brokers:
        raise Refused(ErrorCode.BROKER_NOT_AVAILABLE, "the broker that forms the cluster is still starting")
    if command.broker_id > INT32_MAX or len(command.directory_id) != DIRECTORY_ID_BYTES:
        raise Refused(ErrorCode.INVALID_REQUEST, "that is no id of a broker, or none of a directory")
    # As many as there are brokers, and a few: ids that are only reserved are bounded.
    taken = {**image.reserved_ids, **{broker.broker_id: broker.directory_id for broker in image.brokers.values()}}
    given = next((broker for broker, directory in taken.items() if directory == command.directory_id), None)
    if given is not None:
        return Decided(reply=given)
    wanted = command.broker_id if command.broker_id >= 0 else _broker_at(image, command)
    if wanted is None:
        wanted = _free_id(image, taken)
    elif wanted in image.reserved_ids or (wanted in image.brokers and sessions.is_alive(wanted, now_ms)):
        raise Refused(
            ErrorCode.DUPLICATE_BROKER_REGISTRATION,
            f"the broker id {wanted} is in use by another directory; start this one with another --node-id, or stop "
            "that one, and this one takes its place a few seconds later",
        )
    if wanted in image.brokers:
        return Decided(reply=wanted)  # nobody else can have it: it registers in place of the one that is gone
    return Decided([BrokerIdReserved(broker_id=wanted, directory_id=command.directory_id)], wanted)


def _free_id(image: ClusterImage, taken: Mapping[BrokerId, bytes]) -> BrokerId:
    """The next one; of too many that nobody has registered under, the oldest again."""
    if len(image.reserved_ids) >= RESERVED_IDS_MAX:
        return next(iter(image.reserved_ids))
    following = max(taken) + 1
    return BrokerId(following if following <= INT32_MAX else next(each for each in count(1) if each not in taken))


def _broker_at(image: ClusterImage, command: ReserveBrokerId) -> BrokerId | None:
    """The broker that was where this one is."""
    for broker in image.brokers.values():
        place = broker.listener(PEER_LISTENER)
        if place is not None and (place.host, place.port) == (command.host, command.port):
            return broker.broker_id
    return None


def register_broker(
    image: ClusterImage, rules: ConfigRules[Any], sessions: BrokerSessions, command: RegisterBroker, now_ms: int
) -> Decided:
    known = image.brokers.get(command.broker_id)
    if known is not None and known.incarnation_id == command.incarnation_id:
        return Decided(reply=known.broker_epoch)
    if image.reserved_ids.get(command.broker_id, command.directory_id) != command.directory_id:
        raise Refused(
            ErrorCode.DUPLICATE_BROKER_REGISTRATION,
            f"the broker id {command.broker_id} was given to another directory; start this one with another --node-id",
        )
    check_registration(image, command)
    drafts = Drafts(image, sessions, active_brokers(image) - {command.broker_id})
    if known is not None:
        _check_incarnation(known, sessions, command, now_ms)
        _leave_behind(image, rules, drafts, known, command)
        drafts.settle()
    sessions.begin(command.broker_id, now_ms)
    records: list[MetadataRecord] = [
        *first_levels(image, command),
        *drafts.records(),
        broker_record(_registration(command)),
    ]
    return Decided(records, OffsetOf(len(records) - 1))


def _registration(command: RegisterBroker) -> BrokerImage:
    return BrokerImage(
        command.broker_id,
        command.directory_id,
        command.incarnation_id,
        broker_epoch=NO_EPOCH,
        listeners=command.listeners,
        rack=command.rack,
        is_fenced=True,
        metadata_directory=command.metadata_directory,
        features=command.features,
    )


def _check_incarnation(known: BrokerImage, sessions: BrokerSessions, command: RegisterBroker, now_ms: int) -> None:
    if command.directory_id != known.directory_id:
        if sessions.is_alive(known.broker_id, now_ms):
            raise Refused(
                ErrorCode.DUPLICATE_BROKER_REGISTRATION,
                f"broker {known.broker_id} is running with another directory; give this one another id, or stop that "
                "one and try again in a few seconds",
            )
    elif command.remembered_incarnations is not None and known.incarnation_id not in command.remembered_incarnations:
        raise Refused(
            ErrorCode.INVALID_REGISTRATION,
            f"the directory of broker {known.broker_id} is an old copy: it does not remember its last start. It has to "
            "begin again under a new directory id",
        )


def _leave_behind(
    image: ClusterImage, rules: ConfigRules[Any], drafts: Drafts, known: BrokerImage, command: RegisterBroker
) -> None:
    """What an earlier start of a broker was counted for, this one is not."""
    broker = known.broker_id
    has_lost_disk = command.directory_id != known.directory_id
    was_clean = not has_lost_disk and command.previous_broker_epoch == known.broker_epoch
    new_name = _registration(command).directory_name
    for topic in image.topics.values():
        may_lose = (
            topic.is_in_sync_mode and not was_clean and not rules.cluster_settings(image, topic.configs).waits_for_flush
        )
        for key, partition in topic.keyed_partitions():
            if broker in partition.replicas:
                if has_lost_disk:
                    drafts.rename(key, broker, new_name)
                elif may_lose:
                    drafts.lose(key, broker)
                drafts.leave(key, broker)


def broker_heartbeat(
    image: ClusterImage, sessions: BrokerSessions, command: BrokerHeartbeat, now_ms: int, last_offset: Offset
) -> Decided:
    broker = registered(image, command.broker_id, command.broker_epoch)
    sessions.heard(broker.broker_id, now_ms, command.metadata_offset, command.failed)
    if command.wants_shutdown:
        return _shut_down(image, sessions, broker, last_offset)
    is_ready = command.metadata_offset >= broker.broker_epoch and not broker.in_controlled_shutdown
    unfences = broker.is_fenced and is_ready
    active = active_brokers(image)
    drafts = Drafts(image, sessions, active | {broker.broker_id} if unfences else active)
    for key in sorted(command.failed):
        if image.partition(key) is not None:
            drafts.leave(key, broker.broker_id)
    drafts.settle()
    change = [_registration_changed(broker, is_fenced=False, in_controlled_shutdown=False)] if unfences else []
    return Decided([*change, *drafts.records()], BrokerHeartbeatReply(broker.is_fenced and not unfences))


def _shut_down(image: ClusterImage, sessions: BrokerSessions, broker: BrokerImage, last_offset: Offset) -> Decided:
    """Move its leaders away; when everybody has heard of that, let it go."""
    drafts = Drafts(image, sessions, active_brokers(image) - {broker.broker_id})
    drafts.leave_all(broker.broker_id)
    drafts.settle()
    records: list[MetadataRecord] = [*drafts.records()]
    sessions.moved_away(broker.broker_id, last_offset + len(records), again=bool(records))
    may_stop = sessions.is_known_to_be_moved(broker.broker_id, image.brokers)
    is_fenced = broker.is_fenced or may_stop
    if is_fenced != broker.is_fenced or not broker.in_controlled_shutdown:
        records.append(_registration_changed(broker, is_fenced=is_fenced, in_controlled_shutdown=True))
    return Decided(records, BrokerHeartbeatReply(is_fenced, should_shut_down=may_stop))


def fence_silent(image: ClusterImage, sessions: BrokerSessions, now_ms: int) -> list[MetadataRecord]:
    """Fence whoever has not been heard of for a session."""
    silent = sessions.over(image, now_ms)
    if not silent:
        return []
    drafts = Drafts(image, sessions, active_brokers(image) - set(silent))
    for broker in silent:
        drafts.leave_all(broker)
    drafts.settle()
    return [
        *drafts.records(),
        *(
            _registration_changed(known, is_fenced=True, in_controlled_shutdown=known.in_controlled_shutdown)
            for known in map(image.brokers.__getitem__, silent)
        ),
    ]


def unregister_broker(image: ClusterImage, command: UnregisterBroker) -> Decided:
    """Only one that holds nothing: what it holds would have nobody to look after it."""
    known = image.brokers.get(command.broker_id)
    if known is None:
        raise Refused(ErrorCode.BROKER_ID_NOT_REGISTERED, f"there is no broker {command.broker_id}")
    held = sum(command.broker_id in partition.replicas for _, partition in image.partitions())
    if held:
        raise Refused(
            ErrorCode.INVALID_REQUEST,
            f"broker {command.broker_id} has replicas of {held} partitions; move them to other brokers first, with "
            "`zurau cluster decommission` say",
        )
    return Decided([BrokerUnregistered(broker_id=known.broker_id, broker_epoch=known.broker_epoch)])


def rename_replica(image: ClusterImage, sessions: BrokerSessions, command: RenameReplica) -> Decided:
    broker = registered(image, command.broker_id, command.broker_epoch)
    partition = image.partition(command.partition)
    if partition is None or broker.broker_id not in partition.replicas:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if not command.directory:
        raise Refused(ErrorCode.INVALID_REQUEST, "a replica's directory has a name")
    drafts = Drafts(image, sessions, active_brokers(image))
    drafts.rename(command.partition, broker.broker_id, command.directory)
    drafts.settle()
    return Decided(drafts.records())


def registered(image: ClusterImage, broker_id: BrokerId, broker_epoch: Epoch) -> BrokerImage:
    """The broker, if it is the start that has registered last."""
    broker = image.brokers.get(broker_id)
    if broker is None:
        raise Refused(ErrorCode.BROKER_ID_NOT_REGISTERED)
    if broker.broker_epoch != broker_epoch:
        raise Refused(
            ErrorCode.STALE_BROKER_EPOCH, f"broker {broker_id} has registered again: its epoch is {broker.broker_epoch}"
        )
    return broker


def _registration_changed(
    broker: BrokerImage, *, is_fenced: bool, in_controlled_shutdown: bool
) -> BrokerRegistrationChanged:
    return BrokerRegistrationChanged(
        broker_id=broker.broker_id,
        broker_epoch=broker.broker_epoch,
        is_fenced=is_fenced,
        in_controlled_shutdown=in_controlled_shutdown,
    )
