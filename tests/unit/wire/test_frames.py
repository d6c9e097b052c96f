from __future__ import annotations

import struct
import uuid

import pytest
from kio.schema.api_versions.v4.request import ApiVersionsRequest as KioApiVersionsRequest
from kio.schema.request_header.v2.header import RequestHeader as KioRequestHeader
from kio.serial import entity_writer

from zurau.errors import ProtocolViolation
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.frames import (
    RequestHeader,
    UnsupportedVersion,
    api_key_of,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from zurau.wire.kafka.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from zurau.wire.kafka.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from zurau.wire.kafka.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from zurau.wire.kafka.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

HEARTBEAT, OLD, FLEXIBLE = 12, 3, 4
API_VERSIONS = 18
REQUEST = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")


def header(api_key: int = HEARTBEAT, version: int = FLEXIBLE, client_id: str | None = "me") -> RequestHeader:
    return RequestHeader(api_key, version, 7, client_id)


def unsized(chunks: list) -> memoryview:
    """The frame as a reader hands it on; checks the size on the way."""
    whole = bytearray(b"".join(chunks))
    assert struct.unpack_from(">i", whole) == (len(whole) - 4,)
    return memoryview(whole)[4:]


# Requests


@pytest.mark.parametrize("version", [OLD, FLEXIBLE])
@pytest.mark.parametrize("client_id", ["me", "", None])
def test_a_request_survives_a_round_trip_with_its_header(version, client_id):
    sent = header(version=version, client_id=client_id)
    assert decode_request(unsized(encode_request(sent, REQUEST))) == (sent, REQUEST)


def test_the_header_of_an_old_request_has_no_tagged_fields():
    frame = unsized(encode_request(header(version=OLD), REQUEST))
    assert bytes(frame[:12]) == b"\0\x0c\0\x03\0\0\0\x07\0\x02me"
    assert bytes(frame[12:15]) == b"\0\x01g"


def test_the_header_of_a_flexible_request_has_tagged_fields_but_an_old_client_id():
    frame = unsized(encode_request(header(version=FLEXIBLE), REQUEST))
    assert bytes(frame[:13]) == b"\0\x0c\0\x04\0\0\0\x07\0\x02me\0"
    assert bytes(frame[13:15]) == b"\x02g"


def test_unknown_tagged_fields_in_a_header_are_skipped():
    frame = bytes(unsized(encode_request(header(), REQUEST)))
    with_tag = frame[:12] + b"\x01\x05\x02ab" + frame[13:]
    assert decode_request(memoryview(with_tag)) == (header(), REQUEST)


def test_a_request_that_another_implementation_wrote_is_understood():
    buffer = Writer()
    their_header = KioRequestHeader(
        request_api_key=API_VERSIONS, request_api_version=4, correlation_id=7, client_id="me"
    )
    entity_writer(KioRequestHeader)(buffer, their_header)
    request = KioApiVersionsRequest(client_software_name="kio", client_software_version=str(uuid.UUID(int=0)))
    entity_writer(KioApiVersionsRequest)(buffer, request)
    decoded = ApiVersionsRequest(client_software_name="kio", client_software_version=str(uuid.UUID(int=0)))
    assert decode_request(memoryview(buffer.written)) == (header(API_VERSIONS, 4), decoded)


class Writer:
    def __init__(self) -> None:
        self.written = bytearray()

    def write(self, data: bytes) -> None:
        self.written += data


def test_records_of_a_request_are_a_writable_part_of_its_frame():
    partition = PartitionProduceData(index=0, records=b"batch")
    request = ProduceRequest(acks=1, timeout_ms=1, topic_data=[TopicProduceData(name="t", partition_data=[partition])])
    frame = unsized(encode_request(header(0, 9), request))
    _, decoded = decode_request(frame)
    decoded.topic_data[0].partition_data[0].records[:1] = b"B"
    assert b"Batch" in bytes(frame)


@pytest.mark.parametrize("version", [OLD, FLEXIBLE])
def test_bytes_behind_a_request_are_ignored(version):
    sent = header(version=version)
    frame = bytes(unsized(encode_request(sent, REQUEST)))
    assert decode_request(memoryview(frame + b"\0\0\0")) == (sent, REQUEST)


def test_the_api_of_a_request_is_known_before_it_is_decoded():
    assert api_key_of(unsized(encode_request(header(), REQUEST))) == HEARTBEAT
    assert api_key_of(memoryview(b"\0")) == -1


def test_a_request_cut_short_anywhere_is_a_violation():
    frame = unsized(encode_request(header(), REQUEST))
    for length in range(len(frame)):
        with pytest.raises(ProtocolViolation):
            decode_request(frame[:length])


@pytest.mark.parametrize(
    "client_id", [b"\xff\xfe", b"\x7f\xffme", b"\0\x02\xc3\x28"], ids=["negative", "long", "not UTF-8"]
)
def test_a_malformed_client_id_is_a_violation(client_id):
    with pytest.raises(ProtocolViolation):
        decode_request(memoryview(b"\0\x0c\0\x03\0\0\0\x07" + client_id + b"\0\x01g"))


@pytest.mark.parametrize(("api_key", "version"), [(API_VERSIONS, 99), (0, 2), (999, 0), (-1, 0), (1, -1)])
def test_an_api_or_version_that_is_not_served_is_named_with_its_header(api_key, version):
    frame = struct.pack(">hhih", api_key, version, 7, 2) + b"me\0whatever"
    with pytest.raises(UnsupportedVersion) as caught:
        decode_request(memoryview(frame))
    assert caught.value.header == header(api_key, version)


# Responses


@pytest.mark.parametrize("version", [OLD, FLEXIBLE])
def test_a_response_survives_a_round_trip(version):
    response = HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    sent = header(version=version)
    assert decode_response(sent, unsized(encode_response(sent, response))) == response


def test_only_flexible_responses_have_tagged_fields_in_their_header():
    response = HeartbeatResponse()
    assert bytes(unsized(encode_response(header(version=OLD), response))) == b"\0\0\0\x07" + bytes(6)
    assert bytes(unsized(encode_response(header(version=FLEXIBLE), response))) == b"\0\0\0\x07\0" + bytes(7)


def test_the_header_of_an_api_versions_response_never_has_tagged_fields():
    response = ApiVersionsResponse(api_keys=[ApiVersion(api_key=0, min_version=0, max_version=9)])
    sent = header(API_VERSIONS, 4)
    frame = unsized(encode_response(sent, response))
    assert bytes(frame[4:7]) == b"\0\0\x02"
    assert decode_response(sent, frame) == response


def test_an_answer_in_the_form_of_version_zero_to_an_unknown_version_is_understood():
    offered = ApiVersion(api_key=API_VERSIONS, min_version=0, max_version=3)
    response = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[offered])
    frame = unsized(encode_response(header(API_VERSIONS, 0), response))
    assert decode_response(header(API_VERSIONS, 4), frame) == response


def test_records_of_a_response_are_sent_by_reference():
    batch = bytes(5000)
    partition = PartitionData(partition_index=0, high_watermark=1, records=batch)
    response = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[partition])])
    chunks = encode_response(header(1, 12), response)
    assert chunks[1] is batch
    unsized(chunks)


def test_an_answer_to_another_request_is_a_violation():
    frame = unsized(encode_response(header(), HeartbeatResponse()))
    with pytest.raises(ProtocolViolation, match="request 7 instead of 8"):
        decode_response(header()._replace(correlation_id=8), frame)


def test_bytes_behind_a_response_are_a_violation():
    frame = bytes(unsized(encode_response(header(), HeartbeatResponse())))
    with pytest.raises(ProtocolViolation, match="1 bytes follow HeartbeatResponse v4"):
        decode_response(header(), memoryview(frame + b"\0"))


@pytest.mark.parametrize("sent", [header(), header(version=OLD), header(API_VERSIONS, 0)])
def test_a_response_cut_short_is_a_violation(sent):
    response = ApiVersionsResponse() if sent.api_key == API_VERSIONS else HeartbeatResponse()
    frame = unsized(encode_response(sent, response))
    for length in range(len(frame)):
        with pytest.raises(ProtocolViolation):
            decode_response(sent, frame[:length])
