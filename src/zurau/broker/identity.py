"""Who this broker is: kept in `meta.properties` in its directory, in Kafka's form.

There is no format step: an empty directory becomes a new cluster of one, and one with data in it does not. The
directory id tells this disk from another one that is put in its place, so that a broker that lost its data is never
taken for the one that had it.
"""

from __future__ import annotations

from dataclasses import dataclass

from zurau.broker.directories import partition_directories
from zurau.errors import SettingsError
from zurau.ids import BrokerId, id_bytes, id_text
from zurau.journal.reading import FILE as JOURNAL_FILE
from zurau.ports import Disk, Randomness

FILE = "meta.properties"
ID_BYTES = 16


@dataclass(frozen=True, slots=True)
class Identity:
    broker_id: BrokerId
    cluster_id: str
    directory_id: bytes


def load_identity(disk: Disk, randomness: Randomness, broker_id: BrokerId) -> Identity:
    """The identity that the directory holds, or a new one written to it."""
    content = disk.read_file(FILE)
    if content is not None:
        return _parse(content, broker_id)
    data = JOURNAL_FILE if disk.exists(JOURNAL_FILE) else next(partition_directories(disk), None)
    if data is not None:
        raise SettingsError(
            f"{disk.root / FILE} is missing, though there is data ({data}). Restore that file from a copy: with a new "
            "cluster id this would be another cluster. Or start with another --dir"
        )
    identity = Identity(broker_id, id_text(randomness.bytes(ID_BYTES)), randomness.bytes(ID_BYTES))
    lines = (
        "version=1",
        f"cluster.id={identity.cluster_id}",
        f"node.id={identity.broker_id}",
        f"directory.id={id_text(identity.directory_id)}",
    )
    disk.replace_file(FILE, "\n".join((*lines, "")).encode())
    return identity


def _parse(content: bytes, broker_id: BrokerId) -> Identity:
    try:
        properties = dict(line.split("=", 1) for line in content.decode().splitlines() if "=" in line)
        stored_id = int(properties["node.id"])
        identity = Identity(BrokerId(stored_id), properties["cluster.id"], id_bytes(properties["directory.id"]))
    except (KeyError, ValueError) as error:
        raise SettingsError(f"{FILE} is damaged ({error!r}); restore it, or start with another --dir") from error
    if stored_id != broker_id:
        raise SettingsError(
            f"this directory belongs to broker {stored_id}, not {broker_id}; start with --node-id {stored_id} "
            "or another --dir"
        )
    return identity
