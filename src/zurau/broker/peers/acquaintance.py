"""Whom a broker talks to. A reason for not doing so is told to both, and says what to do."""

from __future__ import annotations

from zurau.ids import BrokerId
from zurau.ports import Handshake


def reason_to_refuse(mine: Handshake, theirs: Handshake, dialled: BrokerId | None, where: str) -> str | None:
    """What is wrong with the broker at the other end, if anything; `dialled` is whom we wanted to talk to there."""
    if mine.broker < 0:
        return f"what broker {theirs.broker} has dialled is in no cluster yet; start it with --join, or wait"
    if theirs.incarnation == mine.incarnation:
        return f"broker {mine.broker} reached itself at {where}; correct the address of broker {dialled}"
    if theirs.broker == mine.broker:
        return (
            f"two brokers have the id {mine.broker}; start one of them with another --node-id, and with a directory "
            "of its own"
        )
    if not theirs.cluster_id:
        return f"broker {theirs.broker} names no cluster; start it with --join, and it is given its id first"
    if theirs.broker < 0:
        return f"{theirs.broker} is no id of a broker"
    if mine.cluster_id != theirs.cluster_id:
        return (
            f"broker {mine.broker} is in the cluster {mine.cluster_id} and broker {theirs.broker} in "
            f"{theirs.cluster_id}; correct the address that led from one to the other, or start one of them with an "
            "empty --dir so that it can join"
        )
    if dialled is not None and theirs.broker != dialled:
        return f"at {where} is broker {theirs.broker} and not {dialled}; correct the address of broker {dialled}"
    if dialled is None and theirs.broker < mine.broker:
        return (
            f"broker {theirs.broker} has dialled broker {mine.broker}; of two brokers the one with the larger id dials"
        )
    return None


def reason_unknown(own_id: BrokerId, broker: BrokerId) -> str:
    return (
        f"broker {own_id} does not know of a broker {broker} in its cluster. If that has just joined, wait; if it was "
        f"removed, start it with an empty --dir and --join; if broker {own_id} was away for long, start it with --join "
        "and addresses of brokers that are there"
    )


def reason_to_keep(present: Handshake, newcomer: Handshake) -> str | None:
    """Why a connection is not replaced by a new one from a broker with the same id, if there is a reason.

    A broker that has started again, or lost the connection before we did, has the directory that it had. With another
    one it is a second broker, or the same with a new disk: that one gets in when the old connection is gone.
    """
    if present.directory_id == newcomer.directory_id:
        return None
    return (
        f"another broker with the id {newcomer.broker} is connected, with another directory; start one of them with "
        "another --node-id. If its disk was replaced, wait until the old connection has ended"
    )
