"""Who may have how many file descriptors.

The system allows a process so many, and one that has run out cannot open the file that a produce needs. So they are
dealt out beforehand: half of them, up to a bound, for files; a few for whatever else the process does; the rest for
connections, and no more than that are accepted.
"""

from __future__ import annotations

import resource

#: Files kept open at a time, if the system allows twice as many descriptors.
OPEN_FILES_MAX = 8192
#: For listening sockets, the loop itself, and files that are opened for a moment: checkpoints, snapshots, directories.
RESERVED = 32
#: Whatever the limit is: with fewer connections than this nobody could find out what is wrong.
CONNECTIONS_MIN = 4


def allowed() -> int:
    """Descriptors that this process may have in all."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 1 << 30 if limit == resource.RLIM_INFINITY else limit


def allow_many() -> None:
    """A shell usually allows 1024 open files, connections among them, though the system allows many more."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def for_files() -> int:
    return min(OPEN_FILES_MAX, allowed() // 2)


def for_connections() -> int:
    return max(CONNECTIONS_MIN, allowed() - for_files() - RESERVED)
