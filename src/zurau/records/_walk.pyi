from zurau.ports import Buffer
from zurau.records.pure_walk import Walked

def walk(payload: Buffer, count: int, base_timestamp: int, earliest: int, latest: int, needs_keys: bool) -> Walked: ...
def find_time(
    payload: Buffer, count: int, base_timestamp: int, first: int, end: int, at_least: int, *, latest: bool
) -> tuple[int, int] | None: ...
