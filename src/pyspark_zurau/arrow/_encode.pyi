from pyspark_zurau.arrow.layout import Cells, HeaderCells, Numbers, Packed
from zurau.ports import Buffer

def choose_partitions(
    row_count: int, keys: Cells | None, given: Numbers | None, partition_count: int, fallback: int
) -> Buffer: ...
def encode(
    row_count: int,
    keys: Cells | None,
    values: Cells,
    headers: HeaderCells | None,
    timestamps_ms: Buffer,
    partitions: Buffer,
    limit_bytes: int,
) -> list[Packed]: ...
