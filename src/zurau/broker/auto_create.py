"""Topics that are made because somebody asked for them by a name that did not exist."""

from __future__ import annotations

from collections.abc import Sequence

from zurau.broker.authorization import Operation, Permission, ResourceType, authorize
from zurau.broker.broker import Broker
from zurau.broker.caller import Caller
from zurau.errors import Refused
from zurau.ids import TopicId
from zurau.machines.controller.commands import CreateTopic
from zurau.machines.controller.image import TopicImage
from zurau.machines.controller.names import is_internal, is_lawful
from zurau.pending import Pending, all_of, start
from zurau.wire.kafka.error_codes import ErrorCode

#: Topics that one question creates; clients ask again for the others, as they do until a new topic has its leaders.
AUTO_CREATED_MAX = 500

_ASK_AGAIN = Refused(ErrorCode.LEADER_NOT_AVAILABLE, "ask again")
#: Another broker was asked for it just before, and this one's image does not hold it yet; or nobody decides at present.
_SOON_THERE = (ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.NOT_CONTROLLER)

CREATE = Permission(Operation.CREATE, ResourceType.TOPIC)


async def create_missing_topics(names: Sequence[str], caller: Caller, broker: Broker) -> dict[str, Refused]:
    """Create what is not there, if the broker is to; returns what could not be created and why."""
    if not broker.settings.auto_create_topics_enable:
        return {}
    turns = broker.world.turns
    refusals: dict[str, Refused] = {}
    asked: dict[str, Pending[TopicImage]] = {}
    for name in names:
        if turns.is_over():
            await turns.next()
        if name in broker.image.topics or is_internal(name) or not is_lawful(name):
            continue
        if len(asked) == AUTO_CREATED_MAX:
            refusals[name] = _ASK_AGAIN
            continue
        try:
            authorize(caller, CREATE, name)
            asked[name] = start(broker.controller.ask(CreateTopic(name, TopicId(broker.randomness.bytes(16)))))
        except Refused as refused:
            refusals[name] = refused
    await all_of(asked.values())
    for name, created in asked.items():
        try:
            await broker.opened(created.result().topic_id)
        except Refused as refused:
            refusals[name] = _ASK_AGAIN if refused.code in _SOON_THERE else refused
    return refusals
