# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The encoder of `pure_encode.py` in C, with the interpreter's lock released.

It goes over the rows twice. The first pass measures each record and decides which batch it goes into; then every batch
is made once, in its right size; the second pass writes.
"""

from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_FromStringAndSize
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy, memset

from pyspark_zurau.arrow.layout import Packed
from zurau.errors import CorruptData

cdef struct Field:
    const uint8_t* validity
    const int32_t* offsets
    const uint8_t* data
    int64_t first

cdef struct Fields:
    Field key
    Field value
    Field lists
    Field header_key
    Field header_value
    const int64_t* timestamps_ms

cdef struct Batch:
    int32_t partition
    int64_t count
    int64_t size
    int64_t first_ms
    int64_t largest_ms
    uint8_t* at
    int64_t written

cdef struct Batches:
    Batch* items
    int32_t count
    int32_t room


def choose_partitions(int64_t row_count, keys, given, int32_t partition_count, int32_t fallback):
    """The partition of each row, as int32: the given one, else that of its key, else `fallback`."""
    cdef Field key = field_of(keys)
    cdef Field number
    memset(&number, 0, sizeof(Field))
    if given is not None:
        number.validity = pointer_to(given.validity)
        number.data = pointer_to(given.data)
        number.first = given.first
    chosen = PyByteArray_FromStringAndSize(NULL, row_count * sizeof(int32_t))
    cdef int32_t* output = <int32_t*>PyByteArray_AS_STRING(chosen)
    cdef int64_t row, length
    cdef const uint8_t* at
    with nogil:
        for row in range(row_count):
            if number.data != NULL and is_valid(number.validity, number.first + row):
                output[row] = (<const int32_t*>number.data)[number.first + row]
                continue
            length = cell(&key, row, &at)
            output[row] = fallback if length < 0 else <int32_t>((murmur2(at, length) & 0x7FFFFFFF) % partition_count)
    return chosen


def encode(int64_t row_count, keys, values, headers, timestamps_ms, partitions, int64_t limit_bytes):
    """Rows as records, packed for each partition in their order; a batch is closed when one more would pass the limit.

    Batches come in the order of their first rows.
    """
    cdef Fields fields
    memset(&fields, 0, sizeof(Fields))
    fields.key = field_of(keys)
    fields.value = field_of(values)
    fields.timestamps_ms = <const int64_t*>pointer_to(timestamps_ms)
    if headers is not None:
        fields.lists.validity = pointer_to(headers.validity)
        fields.lists.offsets = <const int32_t*>pointer_to(headers.offsets)
        fields.lists.first = headers.first
        fields.header_key = field_of(headers.keys)
        fields.header_value = field_of(headers.values)
    cdef const int32_t* partition_of = <const int32_t*>pointer_to(partitions)
    cdef int32_t partition_count = 0
    cdef int64_t row
    for row in range(row_count):
        partition_count = max(partition_count, partition_of[row] + 1)
    cdef int32_t* batch_of = <int32_t*>malloc(max(row_count, 1) * sizeof(int32_t))
    cdef int32_t* open_at = <int32_t*>malloc(max(partition_count, 1) * sizeof(int32_t))
    cdef Batches batches
    memset(&batches, 0, sizeof(Batches))
    cdef const char* problem = b"out of memory"
    try:
        if batch_of != NULL and open_at != NULL:
            memset(open_at, 0xFF, partition_count * sizeof(int32_t))
            with nogil:
                problem = measure(&fields, row_count, partition_of, limit_bytes, open_at, batch_of, &batches)
        if problem != NULL:
            raise CorruptData(problem.decode())
        packed = [new_packed(&batches.items[index]) for index in range(batches.count)]
        with nogil:
            for row in range(row_count):
                write_record(&fields, row, &batches.items[batch_of[row]])
        return packed
    finally:
        free(batch_of)
        free(open_at)
        free(batches.items)


cdef object new_packed(Batch* batch):
    payload = PyByteArray_FromStringAndSize(NULL, batch.size)
    batch.at = <uint8_t*>PyByteArray_AS_STRING(payload)
    return Packed(batch.partition, batch.count, payload, (batch.first_ms, batch.largest_ms))


cdef const uint8_t* pointer_to(buffer) except? NULL:
    """Where a buffer's bytes are; whoever calls keeps the buffer alive."""
    if buffer is None:
        return NULL
    cdef const uint8_t[::1] view = buffer
    # An empty column has no bytes, but it is there: only a column that is not there is NULL.
    return &view[0] if view.shape[0] else <const uint8_t*>b""


cdef Field field_of(cells):
    cdef Field field
    memset(&field, 0, sizeof(Field))
    if cells is not None:
        field.validity = pointer_to(cells.validity)
        field.offsets = <const int32_t*>pointer_to(cells.offsets)
        field.data = pointer_to(cells.data)
        field.first = cells.first
    return field


cdef const char* measure(
    Fields* fields, int64_t row_count, const int32_t* partition_of, int64_t limit_bytes,
    int32_t* open_at, int32_t* batch_of, Batches* batches
) noexcept nogil:
    """Decide which batch each row goes into, and how large those become. What is wrong, or NULL."""
    cdef int64_t row, rest, size, moment_ms
    cdef int32_t place
    cdef Batch* batch
    for row in range(row_count):
        rest = size_without_deltas(fields, row)
        moment_ms = fields.timestamps_ms[row]
        if rest < 0:
            return b"a header has no key"
        place = open_at[partition_of[row]]
        if place >= 0:
            batch = &batches.items[place]
            size = record_size(rest, batch.count, moment_ms - batch.first_ms)
            if batch.size + size <= limit_bytes:
                batch.size += size
                batch.count += 1
                batch.largest_ms = max(batch.largest_ms, moment_ms)
                batch_of[row] = place
                continue
        if not add_batch(batches, partition_of[row], record_size(rest, 0, 0), moment_ms):
            return b"out of memory"
        batch_of[row] = open_at[partition_of[row]] = batches.count - 1
    return NULL


cdef bint add_batch(Batches* batches, int32_t partition, int64_t size, int64_t moment_ms) noexcept nogil:
    cdef Batch* larger
    if batches.count == batches.room:
        larger = <Batch*>realloc(batches.items, (2 * batches.room + 16) * sizeof(Batch))
        if larger == NULL:
            return False
        batches.items = larger
        batches.room = 2 * batches.room + 16
    memset(&batches.items[batches.count], 0, sizeof(Batch))
    batches.items[batches.count].partition = partition
    batches.items[batches.count].count = 1
    batches.items[batches.count].size = size
    batches.items[batches.count].first_ms = batches.items[batches.count].largest_ms = moment_ms
    batches.count += 1
    return True


cdef int64_t size_without_deltas(Fields* fields, int64_t row) noexcept nogil:
    """Bytes of a record but for its length and what is relative to its batch; -1 when a header has no key."""
    cdef const uint8_t* unused
    cdef int64_t index, length, start, stop
    cdef int64_t size = 1  # the attributes
    size += bytes_size(cell(&fields.key, row, &unused)) + bytes_size(cell(&fields.value, row, &unused))
    header_range(fields, row, &start, &stop)
    size += varint_size(stop - start)
    for index in range(start, stop):
        length = cell(&fields.header_key, index, &unused)
        if length < 0:
            return -1
        size += bytes_size(length) + bytes_size(cell(&fields.header_value, index, &unused))
    return size


cdef void write_record(Fields* fields, int64_t row, Batch* batch) noexcept nogil:
    cdef const uint8_t* source
    cdef int64_t index, length, start, stop
    cdef uint8_t* at = batch.at
    cdef int64_t delta_ms = fields.timestamps_ms[row] - batch.first_ms
    at = write_varint(at, size_without_deltas(fields, row) + varint_size(delta_ms) + varint_size(batch.written))
    at[0] = 0  # the attributes
    at = write_varint(at + 1, delta_ms)
    at = write_varint(at, batch.written)
    length = cell(&fields.key, row, &source)
    at = write_bytes(at, source, length)
    length = cell(&fields.value, row, &source)
    at = write_bytes(at, source, length)
    header_range(fields, row, &start, &stop)
    at = write_varint(at, stop - start)
    for index in range(start, stop):
        length = cell(&fields.header_key, index, &source)
        at = write_bytes(at, source, length)
        length = cell(&fields.header_value, index, &source)
        at = write_bytes(at, source, length)
    batch.at = at
    batch.written += 1


cdef inline void header_range(Fields* fields, int64_t row, int64_t* start, int64_t* stop) noexcept nogil:
    cdef int64_t index = fields.lists.first + row
    start[0] = stop[0] = 0
    if fields.lists.offsets != NULL and is_valid(fields.lists.validity, index):
        start[0] = fields.lists.offsets[index]
        stop[0] = fields.lists.offsets[index + 1]


cdef inline bint is_valid(const uint8_t* validity, int64_t index) noexcept nogil:
    return validity == NULL or (validity[index >> 3] >> (index & 7)) & 1


cdef inline int64_t cell(Field* field, int64_t row, const uint8_t** at) noexcept nogil:
    """Its length, or -1 for a null."""
    cdef int64_t index = field.first + row
    at[0] = NULL
    if field.offsets == NULL or not is_valid(field.validity, index):
        return -1
    at[0] = field.data + field.offsets[index]
    return field.offsets[index + 1] - field.offsets[index]


cdef inline int64_t record_size(int64_t rest, int64_t delta, int64_t delta_ms) noexcept nogil:
    cdef int64_t body = rest + varint_size(delta) + varint_size(delta_ms)
    return varint_size(body) + body


cdef inline int64_t bytes_size(int64_t length) noexcept nogil:
    return varint_size(length) + (length if length > 0 else 0)


cdef inline int64_t varint_size(int64_t number) noexcept nogil:
    cdef uint64_t bits = (<uint64_t>number << 1) ^ <uint64_t>(number >> 63)
    cdef int64_t size = 1
    while bits > 0x7F:
        bits >>= 7
        size += 1
    return size


cdef inline uint8_t* write_varint(uint8_t* at, int64_t number) noexcept nogil:
    cdef uint64_t bits = (<uint64_t>number << 1) ^ <uint64_t>(number >> 63)
    while bits > 0x7F:
        at[0] = <uint8_t>(bits & 0x7F | 0x80)
        bits >>= 7
        at += 1
    at[0] = <uint8_t>bits
    return at + 1


cdef inline uint8_t* write_bytes(uint8_t* at, const uint8_t* source, int64_t length) noexcept nogil:
    at = write_varint(at, length)
    if length > 0:
        memcpy(at, source, length)
        at += length
    return at


cdef uint32_t murmur2(const uint8_t* key, int64_t length) noexcept nogil:
    """As in zurau/records/partitioner.py."""
    cdef uint32_t hashed = 0x9747B28Cu ^ <uint32_t>length
    cdef uint32_t word
    cdef int64_t left = length
    while left >= 4:
        word = key[0] | key[1] << 8 | key[2] << 16 | <uint32_t>key[3] << 24
        word *= 0x5BD1E995u
        word ^= word >> 24
        hashed = (hashed * 0x5BD1E995u) ^ (word * 0x5BD1E995u)
        key += 4
        left -= 4
    if left > 0:
        if left == 3:
            hashed ^= <uint32_t>key[2] << 16
        if left >= 2:
            hashed ^= <uint32_t>key[1] << 8
        hashed = (hashed ^ key[0]) * 0x5BD1E995u
    hashed = (hashed ^ (hashed >> 13)) * 0x5BD1E995u
    return hashed ^ (hashed >> 15)
