"""Records as lines of text, both ways.

As JSON a record is one object a line, the same for `zurau consume --format json` and `zurau produce --json`, so that
one can be piped into the other:

    {"topic": "orders", "partition": 0, "offset": 7, "timestamp": 1767225600000, "key": "k", "value": "v",
     "headers": [["name", "value"]]}

Bytes that are not UTF-8 stand as {"base64": "..."}; a key or value that is not there is null.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from zurau.cli.times import format_time
from zurau.client.errors import ClientError
from zurau.settings import INT32_MAX, INT64_MAX

if TYPE_CHECKING:
    from zurau.ids import TopicPartition
    from zurau.records.record import Record

Render = Callable[["TopicPartition", "Record"], bytes]

_FIELD = re.compile(r"\{(\w+)\}")
_ESCAPES = {r"\n": "\n", r"\t": "\t", r"\0": "\0", "\\\\": "\\"}


class ParsedRecord(NamedTuple):
    """What a line says; None leaves the choice to the producer."""

    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    partition: int | None = None
    timestamp_ms: int | None = None


def render_json(partition: TopicPartition, record: Record) -> bytes:
    place = {"topic": partition.topic, "partition": partition.partition}
    return json.dumps(place | record_object(record), ensure_ascii=False).encode() + b"\n"


def record_object(record: Record) -> dict[str, Any]:
    """A record as a JSON object, without the place where it was found."""
    return {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": _to_json(record.key),
        "value": _to_json(record.value),
        "headers": [[name, _to_json(value)] for name, value in record.headers],
    }


def parse_json(line: bytes) -> ParsedRecord:
    """The inverse of `render_json`; everything but the value may be left out."""
    try:
        described = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ClientError(f"this is not JSON: {error}") from error
    if not isinstance(described, dict) or "value" not in described:
        raise ClientError('a record is an object with at least a "value"; to send text as it is, leave out --json')
    try:
        return ParsedRecord(
            key=_from_json(described.get("key")),
            value=_from_json(described["value"]),
            headers=_headers_from_json(described.get("headers") or []),
            partition=_number_from_json(described, "partition", INT32_MAX),
            timestamp_ms=_number_from_json(described, "timestamp", INT64_MAX),
        )
    except UnicodeEncodeError as error:
        raise ClientError("half a character (a lone surrogate) has no bytes; write it whole, or as base64") from error


def _headers_from_json(headers: Any) -> list[tuple[str, bytes | None]]:
    pairs = list(headers.items()) if isinstance(headers, dict) else headers
    if not isinstance(pairs, list) or not all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in pairs):
        raise ClientError('"headers" is an object, or a list of pairs like ["name", "value"]')
    return [(str(name).encode().decode(), _from_json(value)) for name, value in pairs]


def _number_from_json(described: dict[str, Any], name: str, most: int) -> int | None:
    number = described.get(name)
    if number is not None and (type(number) is not int or not -1 <= number <= most):
        raise ClientError(f'"{name}" is a whole number up to {most}, not {number!r}')
    return number


def template_renderer(template: str, option: str) -> Render:
    """A renderer for `{topic} {partition} {offset} {timestamp} {time} {key} {value} {headers}`."""
    for escape, meaning in _ESCAPES.items():
        template = template.replace(escape, meaning)
    # Splitting by a pattern with one group gives text and field names by turns.
    parts = _FIELD.split(template)
    for name in parts[1::2]:
        if name not in _FIELDS:
            raise typer.BadParameter(f"there is no field {{{name}}}; use {', '.join(_FIELDS)}", param_hint=option)
    texts = [text.encode() for text in parts[::2]]
    fields = [_FIELDS[name] for name in parts[1::2]]

    def render(partition: TopicPartition, record: Record) -> bytes:
        rendered = [texts[0]]
        for field, text in zip(fields, texts[1:], strict=True):
            rendered += (field(partition, record), text)
        return b"".join(rendered)

    return render


def _headers_text(record: Record) -> bytes:
    return b",".join(name.encode() + b"=" + (value or b"") for name, value in record.headers)


_FIELDS: dict[str, Render] = {
    "topic": lambda partition, _: partition.topic.encode(),
    "partition": lambda partition, _: b"%d" % partition.partition,
    "offset": lambda _, record: b"%d" % record.offset,
    "timestamp": lambda _, record: b"%d" % record.timestamp,
    "time": lambda _, record: (format_time(record.timestamp) or "").encode(),
    "key": lambda _, record: record.key or b"",
    "value": lambda _, record: record.value or b"",
    "headers": lambda _, record: _headers_text(record),
}


def _to_json(content: bytes | None) -> str | dict[str, str] | None:
    if content is None:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(content).decode()}


def _from_json(content: Any) -> bytes | None:
    if content is None or isinstance(content, str):
        return None if content is None else content.encode()
    if isinstance(content, dict) and content.keys() == {"base64"}:
        try:
            return base64.b64decode(content["base64"], validate=True)
        except (binascii.Error, TypeError) as error:
            raise ClientError(f"this is not base64: {error}") from error
    # Any other JSON is sent as its own text.
    return json.dumps(content, ensure_ascii=False).encode()
