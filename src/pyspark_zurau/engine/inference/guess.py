"""From a sample of values to the keys of a source."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark_zurau.engine.avro import decode_one, read_schema
from pyspark_zurau.engine.inference.logs import LOGS, LogKind
from pyspark_zurau.engine.inference.types import Kind, kind_of, kind_of_texts, quoted
from pyspark_zurau.engine.regex import in_python
from zurau.errors import SettingsError

#: So large a part of the values has to fit.
ENOUGH = 0.75
SEPARATORS = (",", ";", "\t", "|")
_NAME = re.compile(r"[A-Za-z_][\w .-]*")


@dataclass(frozen=True)
class Guess:
    #: In a word or two, for people.
    what: str
    format: str
    #: Keys of the source, in the order in which they are written.
    keys: Mapping[str, Any] = field(default_factory=dict)
    #: How many of the values fit.
    fits: int = 0
    notes: tuple[str, ...] = ()


def guess(values: Sequence[bytes], schema_files: Iterable[Path] = ()) -> Guess:
    """Never fails: text fits anything that is text, and raw fits all."""
    enough = ENOUGH * len(values)
    for file in schema_files:
        found = _avro(values, file)
        if found is not None and found.fits >= enough:
            return found
    if sum(_is_confluent(value) for value in values) >= enough:
        return _unknown_avro(values)
    texts = [text for value in values if (text := _decoded(value)) is not None]
    if len(texts) < enough:
        return Guess("bytes", "raw", fits=len(values))
    candidates = (_json(texts), *(_log(texts, kind) for kind in LOGS), *(_csv(texts, one) for one in SEPARATORS))
    for found in candidates:
        if found is not None and found.fits >= enough:
            return found
    return Guess("text", "text", fits=len(texts))


def _decoded(value: bytes) -> str | None:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None


def _json(texts: list[str]) -> Guess | None:
    objects = [found for text in texts if isinstance(found := _loaded(text), dict) and found]
    if not objects:
        return None
    names = dict.fromkeys(name for each in objects for name in each)
    kinds = {name: kind_of(name, [each.get(name) for each in objects]) for name in names}
    return Guess("JSON", "json", _columns(kinds), len(objects))


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _log(texts: list[str], kind: LogKind) -> Guess | None:
    pattern = re.compile(in_python(kind.pattern))
    fits = sum(1 for text in texts if pattern.fullmatch(text))
    keys = {"pattern": kind.pattern, "schema": kind.schema, "time_format": {"time": kind.time_format}}
    return Guess(kind.what, "regex", keys, fits)


def _csv(texts: list[str], separator: str) -> Guess | None:
    rows = [next(csv.reader([text], delimiter=separator), []) for text in texts]
    (width, _), *_ = Counter(map(len, rows)).most_common(1)
    rows = [row for row in rows if len(row) == width]
    if width < 2:
        return None
    names, notes = [f"c{number}" for number in range(1, width + 1)], []
    if _is_heading(rows[0], rows[1:]):
        names, rows = rows[0], rows[1:]
        notes.append("the first record is a heading, from which the columns have their names; it is a dead letter")
    else:
        notes.append("the columns have no names yet: give them some in schema")
    columns = zip(names, zip(*rows, strict=True), strict=True)
    kinds = {name.strip(): kind_of_texts(name, texts) for name, texts in columns}
    if len(kinds) < width:
        return None
    keys = _columns(kinds) | ({} if separator == "," else {"separator": separator})
    return Guess("CSV", "csv", keys, len(rows), tuple(notes))


def _is_heading(first: list[str], others: list[list[str]]) -> bool:
    """Names, above a column that is not of names."""
    if not others or not all(_NAME.fullmatch(cell.strip()) for cell in first):
        return False
    kinds = [kind_of_texts("", column).ddl for column in zip(*others, strict=True)]
    return any(kind != "STRING" for kind in kinds)


def _columns(kinds: Mapping[str, Kind]) -> dict[str, Any]:
    keys: dict[str, Any] = {"schema": ", ".join(f"{quoted(name)} {kind.ddl}" for name, kind in kinds.items())}
    times = {name: kind.time_format for name, kind in kinds.items() if kind.time_format}
    return keys | ({"time_format": times} if times else {})


def _avro(values: Sequence[bytes], file: Path) -> Guess | None:
    try:
        schema = json.dumps(read_schema(file))
    except SettingsError:
        return None
    for framing in ("none", "confluent"):
        read = [decode_one(schema, value, confluent=framing == "confluent") for value in values]
        fits = sum(1 for each in read if each["reason"] is None)
        if fits >= ENOUGH * len(values):
            keys = {"schema_file": str(file)} | ({"framing": framing} if framing != "none" else {})
            return Guess("Avro", "avro", keys, fits)
    return None


def _is_confluent(value: bytes) -> bool:
    """A zero and a schema number that is not absurd, and then no text."""
    return len(value) > 5 and value[0] == 0 and value[1] == 0


def _unknown_avro(values: Sequence[bytes]) -> Guess:
    numbers = sorted({int.from_bytes(value[1:5]) for value in values if _is_confluent(value)})
    note = (
        f"the values are Avro of schema {', '.join(map(str, numbers))} of a registry: save it as schema.avsc beside"
        " the file, or run this again with --avro-schema FILE"
    )
    keys = {"schema_file": "schema.avsc", "framing": "confluent"}
    return Guess("Avro", "avro", keys, len(values), (note,))
