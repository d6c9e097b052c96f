"""Where a lake is: a directory, or a place in an object store that speaks S3. Both are a file system of Arrow's.

Credentials are found as every tool of AWS finds them: in the environment (`AWS_ACCESS_KEY_ID` and so on), in
`~/.aws`, or from the machine's role. `AWS_ENDPOINT_URL` leads to a store that is not Amazon's. What the driver has in
its environment goes with its tasks, as Spark does it for Java's own way to these stores.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from pyarrow.fs import FileSystem, FileType, LocalFileSystem, SubTreeFileSystem

S3 = "s3"


def is_far(location: str) -> bool:
    """Whether it is in an object store."""
    return "://" in location and not location.startswith("file://")


def access_from_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith("AWS_")}


@dataclass(frozen=True)
class Lake:
    """Travels with tasks. Nobody is shown how it gets in."""

    location: str
    access: Mapping[str, str] = field(default_factory=access_from_environment, repr=False, compare=False)

    def open(self) -> SubTreeFileSystem:
        """Paths in it are from its root."""
        if not is_far(self.location):
            root = Path(self.location.removeprefix("file://")).absolute()
            return SubTreeFileSystem(str(root), LocalFileSystem())
        place = urlsplit(self.location)
        return SubTreeFileSystem(f"{place.netloc}{place.path}".rstrip("/"), _s3(self.access))


def is_there(store: FileSystem, path: str) -> bool:
    return bool(store.get_file_info(path).type != FileType.NotFound)


def _s3(access: Mapping[str, str]) -> FileSystem:
    from pyarrow.fs import S3FileSystem

    endpoint = urlsplit(access.get("AWS_ENDPOINT_URL_S3") or access.get("AWS_ENDPOINT_URL") or "")
    given = {
        "region": access.get("AWS_REGION") or access.get("AWS_DEFAULT_REGION"),
        "access_key": access.get("AWS_ACCESS_KEY_ID"),
        "secret_key": access.get("AWS_SECRET_ACCESS_KEY"),
        "session_token": access.get("AWS_SESSION_TOKEN"),
        "endpoint_override": endpoint.netloc,
        "scheme": endpoint.scheme,
    }
    return S3FileSystem(**{name: value for name, value in given.items() if value})
