"""Who this broker is: kept in `meta.properties` in its directory, in Kafka's form.

There is no format step: an empty directory becomes a new cluster of one, or joins one (`joining.py`). The
directory id tells this disk from another one that is put in its place, so that a broker that lost its data is never
taken for the one that had it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from zurau.broker.directories import partition_directories
from zurau.errors import SettingsError
from zurau.ids import BrokerId, directory_name, id_bytes, id_text
from zurau.journal.reading import FILE as JOURNAL_FILE
from zurau.ports import Disk, Randomness

FILE = "meta.properties"
ID_BYTES = 16
T = TypeVar("T")


class Identity(msgspec.Struct, frozen=True):
    broker_id: BrokerId
    cluster_id: str
    directory_id: bytes
    #: It began the cluster: its replica of the metadata log was the first voter.
    is_founder: bool = True
    #: There may be others in its cluster; or else it has always been alone.
    is_clustered: bool = False

    @property
    def directory_name(self) -> str:
        """What its replica of the metadata log is called by, and new ones of topics."""
        return directory_name(self.directory_id)


def load_identity(disk: Disk, randomness: Randomness, broker_id: BrokerId | None) -> Identity:
    """The identity that the directory holds, or that of a new cluster of one, written to it."""
    identity = read_identity(disk, broker_id)
    if identity is None:
        cluster_id = id_text(randomness.bytes(ID_BYTES))
        identity = replace(
            new_identity(BrokerId(1) if broker_id is None else broker_id, randomness), cluster_id=cluster_id
        )
        save_identity(disk, identity)
    return identity


def new_identity(broker_id: BrokerId, randomness: Randomness) -> Identity:
    """Of a directory that belongs to no cluster yet."""
    return Identity(broker_id, "", randomness.bytes(ID_BYTES))


def read_identity(disk: Disk, broker_id: BrokerId | None) -> Identity | None:
    """The identity that the directory holds; None if it is new. `broker_id`: the one that it has to be."""
    content = disk.read_file(FILE)
    if content is not None:
        return _parse(content, broker_id)
    data = JOURNAL_FILE if disk.exists(JOURNAL_FILE) else next(partition_directories(disk), None)
    if data is not None:
        raise SettingsError(
            f"{disk.root / FILE} is missing, though there is data ({data}). Restore that file from a copy: with a new "
            "cluster id this would be another cluster. Or start with another --dir"
        )
    return None


def save_identity(disk: Disk, identity: Identity) -> None:
    """Blocks."""
    lines = (
        "version=1",
        f"cluster.id={identity.cluster_id}",
        f"node.id={identity.broker_id}",
        f"directory.id={id_text(identity.directory_id)}",
        f"zurau.founder={str(identity.is_founder).lower()}",
        f"zurau.clustered={str(identity.is_clustered).lower()}",
    )
    disk.replace_file(FILE, "\n".join((*lines, "")).encode())


def _parse(content: bytes, broker_id: BrokerId | None) -> Identity:
    properties = dict(line.split("=", 1) for line in content.decode(errors="replace").splitlines() if "=" in line)
    stored_id = _read(properties, "node.id", int)
    cluster_id = _read(properties, "cluster.id", str)
    identity = Identity(
        BrokerId(stored_id),
        cluster_id,
        _read(properties, "directory.id", _directory_id),
        is_founder=properties.get("zurau.founder", "true") == "true",
        is_clustered=properties.get("zurau.clustered", "false") == "true",
    )
    if broker_id is not None and stored_id != broker_id:
        raise SettingsError(
            f"this directory belongs to broker {stored_id}, not {broker_id}; start with --node-id {stored_id} "
            "or another --dir"
        )
    return identity


def _directory_id(text: str) -> bytes:
    found = id_bytes(text)
    if len(found) != ID_BYTES:
        raise ValueError(text)
    return found


def _read(properties: dict[str, str], name: str, convert: Callable[[str], T]) -> T:
    if name not in properties:
        problem = f"it has no line {name}=..."
    else:
        try:
            return convert(properties[name])
        except ValueError:
            problem = f"the line {name}={properties[name]} is wrong"
    raise SettingsError(f"{FILE} is damaged: {problem}; restore that file from a copy, or start with another --dir")
