from __future__ import annotations

import pytest

from zurau.records.partitioner import murmur2, partition_for_key

#: From the Java client's own tests.
JAVA = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


@pytest.mark.parametrize("key", JAVA)
def test_keys_hash_as_in_the_java_client(key):
    assert murmur2(key) == JAVA[key]


def test_partitions_are_never_negative():
    assert [partition_for_key(key, 10) for key in JAVA] == [(JAVA[key] & 0x7FFFFFFF) % 10 for key in JAVA]
