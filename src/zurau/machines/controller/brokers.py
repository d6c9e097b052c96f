"""Which brokers there are.

A broker registers at each start. Its directory id names the disk and its incarnation id the process, so a broker that
comes back with an empty disk is known for what it is: the same number, but nobody's voter.
"""

from __future__ import annotations

from zurau.machines.controller.commands import RegisterBroker
from zurau.machines.controller.decided import Decided
from zurau.machines.controller.image import BrokerImage, ClusterImage
from zurau.machines.controller.records import BrokerRegistered


def register_broker(image: ClusterImage, command: RegisterBroker) -> Decided:
    asked = BrokerImage(command.broker_id, command.directory_id, command.incarnation_id)
    if image.brokers.get(command.broker_id) == asked:
        return Decided()
    return Decided(
        BrokerRegistered(
            broker_id=command.broker_id,
            directory_id=command.directory_id,
            incarnation_id=command.incarnation_id,
        )
    )
