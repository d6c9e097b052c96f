"""InitProducerId: an identity for a producer, so that its retries are known for what they are (KIP-98).

A producer without a transactional id is nobody in particular, so it always gets a new id, also when it names the one
it had: that is how it starts afresh after an error. There are no transactions yet. A producer that wants them is
refused with TRANSACTIONAL_ID_AUTHORIZATION_FAILED, the one code at which every client stops for good; librdkafka
would go on asking for ever after most others.
"""

from __future__ import annotations

from zurau.api.kafka.call import Call
from zurau.errors import Refused
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

FIRST_EPOCH = 0


async def handle(request: InitProducerIdRequest, call: Call) -> InitProducerIdResponse:
    try:
        _check(request)
        producer_id = await call.broker.producer_ids.next()
    except Refused as refused:
        return InitProducerIdResponse(error_code=refused.code)
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=FIRST_EPOCH)


def _check(request: InitProducerIdRequest) -> None:
    if request.transactional_id == "" or (request.producer_id < 0) != (request.producer_epoch < 0):
        raise Refused(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is not None:
        raise Refused(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
