# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The decoder of `pure_decode.py` in C, with the interpreter's lock released.

It goes over the records twice. The first pass checks everything and adds up what is there; then every buffer is made
once, in its right size; the second pass copies, and need not check again.
"""

from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_FromStringAndSize
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset

from pyspark_zurau.arrow.layout import Binary, Columns, HeaderLists
from zurau.errors import CorruptData

cdef enum:
    WANT_KEYS = 1
    WANT_VALUES = 2
    WANT_HEADERS = 4

cdef int64_t INT64_LARGEST = 0x7FFFFFFFFFFFFFFF
cdef int64_t INT32_LARGEST = 0x7FFFFFFF
cdef int64_t TIMESTAMP_MS_MAX = INT64_LARGEST // 1000
cdef int64_t RECORD_BYTES_MIN = 7

cdef struct Facts:
    const uint8_t* data
    int64_t size
    int64_t count
    int64_t base_offset
    int64_t base_timestamp
    int64_t append_time
    bint uses_append_time

cdef struct Totals:
    int64_t rows
    int64_t key_bytes
    int64_t value_bytes
    int64_t null_keys
    int64_t null_values
    int64_t bare_rows
    int64_t headers
    int64_t header_key_bytes
    int64_t header_value_bytes
    int64_t null_header_values

# Of the headers of one record.
cdef struct Sizes:
    int64_t header_key_bytes
    int64_t header_value_bytes
    int64_t null_header_values

cdef struct Record:
    int64_t offset
    int64_t timestamp
    const uint8_t* key
    int64_t key_length
    const uint8_t* value
    int64_t value_length
    int64_t header_count
    const uint8_t* headers

cdef struct Output:
    int64_t* offsets
    int64_t* timestamps
    int32_t* key_offsets
    uint8_t* keys
    uint8_t* key_validity
    int32_t* value_offsets
    uint8_t* values
    uint8_t* value_validity
    int32_t* list_offsets
    uint8_t* list_validity
    int32_t* header_key_offsets
    uint8_t* header_keys
    int32_t* header_value_offsets
    uint8_t* header_values
    uint8_t* header_value_validity


def decode(parts, int64_t start, int64_t end, int wanted):
    """The records with offsets from `start` to before `end`. Raises `CorruptData` if any record is damaged."""
    cdef Totals totals
    cdef Output output
    cdef Facts facts
    cdef const uint8_t[::1] view
    cdef const char* problem
    memset(&totals, 0, sizeof(Totals))
    memset(&output, 0, sizeof(Output))
    for part in parts:
        view = part.payload
        facts = facts_of(part.header, view)
        with nogil:
            problem = measure(&facts, start, end, &totals)
        if problem != NULL:
            raise CorruptData(problem.decode())
    if max(totals.key_bytes, totals.value_bytes, totals.header_key_bytes, totals.header_value_bytes) > INT32_LARGEST:
        raise CorruptData("more than two gigabytes of records at once")
    columns = make_columns(&totals, &output, wanted)
    memset(&totals, 0, sizeof(Totals))
    for part in parts:
        view = part.payload
        facts = facts_of(part.header, view)
        with nogil:
            fill(&facts, start, end, &totals, &output)
    return columns


cdef Facts facts_of(header, const uint8_t[::1] view):
    cdef Facts facts
    facts.size = view.shape[0]
    facts.data = &view[0] if facts.size else NULL
    facts.count = header.record_count
    facts.base_offset = header.base_offset
    facts.base_timestamp = header.base_timestamp
    facts.append_time = header.max_timestamp
    facts.uses_append_time = header.uses_append_time
    return facts


cdef object new_buffer(int64_t size):
    """Not zeroed: every byte is written by the second pass."""
    return PyByteArray_FromStringAndSize(NULL, size)


cdef object new_bitmap(int64_t rows, int64_t null_count, uint8_t** place):
    if null_count == 0:
        return None
    bitmap = bytearray((rows + 7) // 8)
    place[0] = <uint8_t*>PyByteArray_AS_STRING(bitmap)
    return bitmap


cdef object new_binary(
    int64_t rows, int64_t size, int64_t null_count, int32_t** offsets, uint8_t** data, uint8_t** validity
):
    offset_buffer = new_buffer((rows + 1) * sizeof(int32_t))
    data_buffer = new_buffer(size)
    offsets[0] = <int32_t*>PyByteArray_AS_STRING(offset_buffer)
    offsets[0][0] = 0
    data[0] = <uint8_t*>PyByteArray_AS_STRING(data_buffer)
    return Binary(new_bitmap(rows, null_count, validity), offset_buffer, data_buffer, null_count)


cdef object make_columns(Totals* totals, Output* output, int wanted):
    cdef uint8_t* never_null = NULL
    rows = totals.rows
    offsets = new_buffer(rows * sizeof(int64_t))
    timestamps = new_buffer(rows * sizeof(int64_t))
    output.offsets = <int64_t*>PyByteArray_AS_STRING(offsets)
    output.timestamps = <int64_t*>PyByteArray_AS_STRING(timestamps)
    keys = values = headers = None
    if wanted & WANT_KEYS:
        keys = new_binary(
            rows, totals.key_bytes, totals.null_keys, &output.key_offsets, &output.keys, &output.key_validity
        )
    if wanted & WANT_VALUES:
        values = new_binary(
            rows, totals.value_bytes, totals.null_values, &output.value_offsets, &output.values, &output.value_validity
        )
    if wanted & WANT_HEADERS:
        list_offsets = new_buffer((rows + 1) * sizeof(int32_t))
        output.list_offsets = <int32_t*>PyByteArray_AS_STRING(list_offsets)
        output.list_offsets[0] = 0
        headers = HeaderLists(
            new_bitmap(rows, totals.bare_rows, &output.list_validity),
            list_offsets,
            totals.bare_rows,
            totals.headers,
            new_binary(
                totals.headers, totals.header_key_bytes, 0,
                &output.header_key_offsets, &output.header_keys, &never_null,
            ),
            new_binary(
                totals.headers, totals.header_value_bytes, totals.null_header_values,
                &output.header_value_offsets, &output.header_values, &output.header_value_validity,
            ),
        )
    return Columns(rows, offsets, timestamps, keys, values, headers)


cdef const char* measure(Facts* facts, int64_t start, int64_t end, Totals* totals) noexcept nogil:
    """Check one part and add up what of it is wanted. What is wrong with it, or NULL."""
    cdef const uint8_t* at = facts.data
    cdef const uint8_t* stop = facts.data + facts.size
    cdef const char* problem
    cdef Record record
    cdef Sizes sizes
    if facts.count < 0 or facts.count > facts.size // RECORD_BYTES_MIN:
        return b"the records do not fit into their batch"
    for _ in range(facts.count):
        memset(&sizes, 0, sizeof(Sizes))
        problem = read_record(&at, stop, facts, &record, &sizes)
        if problem != NULL:
            return problem
        if start <= record.offset < end:
            totals.rows += 1
            totals.key_bytes += record.key_length if record.key_length > 0 else 0
            totals.value_bytes += record.value_length if record.value_length > 0 else 0
            totals.null_keys += record.key_length < 0
            totals.null_values += record.value_length < 0
            totals.bare_rows += record.header_count == 0
            totals.headers += record.header_count
            totals.header_key_bytes += sizes.header_key_bytes
            totals.header_value_bytes += sizes.header_value_bytes
            totals.null_header_values += sizes.null_header_values
    if at != stop:
        return b"bytes follow the last record of a batch"
    return NULL


cdef inline const char* read_record(
    const uint8_t** position, const uint8_t* stop, Facts* facts, Record* record, Sizes* sizes
) noexcept nogil:
    cdef const uint8_t* at = position[0]
    cdef int64_t length, timestamp_delta, offset_delta
    if not read_varint(&at, stop, &length) or length < 1 or length > stop - at:
        return b"a record runs over the end of its batch"
    cdef const uint8_t* end = at + length
    at += 1  # the attributes, which nothing uses
    if not read_varint(&at, end, &timestamp_delta) or not read_varint(&at, end, &offset_delta):
        return b"a record's length and content disagree"
    if offset_delta > INT32_LARGEST or offset_delta < -INT32_LARGEST:
        return b"a record's offset is too far from that of its batch"
    if not read_bytes(&at, end, &record.key, &record.key_length):
        return b"a key does not fit into its record"
    if not read_bytes(&at, end, &record.value, &record.value_length):
        return b"a value does not fit into its record"
    if not read_varint(&at, end, &record.header_count) or record.header_count < 0 or record.header_count > end - at:
        return b"the headers do not fit into their record"
    record.headers = at
    if record.header_count > 0 and not read_headers(&at, end, record.header_count, sizes):
        return b"a header does not fit into its record, or has no key, or one that is not UTF-8"
    if at != end:
        return b"a record's length and content disagree"
    record.offset = <int64_t>(<uint64_t>facts.base_offset + <uint64_t>offset_delta)
    record.timestamp = microseconds(
        facts.append_time if facts.uses_append_time else held_sum(facts.base_timestamp, timestamp_delta)
    )
    position[0] = end
    return NULL


cdef bint read_headers(const uint8_t** position, const uint8_t* end, int64_t count, Sizes* sizes) noexcept nogil:
    cdef const uint8_t* field
    cdef int64_t length
    for _ in range(count):
        if not read_bytes(position, end, &field, &length) or length < 0 or not is_utf8(field, length):
            return False
        sizes.header_key_bytes += length
        if not read_bytes(position, end, &field, &length):
            return False
        sizes.header_value_bytes += length if length > 0 else 0
        sizes.null_header_values += length < 0
    return True


cdef bint is_utf8(const uint8_t* data, int64_t length) noexcept nogil:
    cdef int64_t index
    cdef uint8_t every_bit = 0
    for index in range(length):
        every_bit |= data[index]
    if every_bit < 0x80:
        return True
    with gil:  # rare enough to ask the interpreter
        try:
            PyUnicode_DecodeUTF8(<const char*>data, length, NULL)
        except UnicodeDecodeError:
            return False
        return True


cdef void fill(Facts* facts, int64_t start, int64_t end, Totals* done, Output* output) noexcept nogil:
    """Copy one part that `measure` has passed."""
    cdef const uint8_t* at = facts.data
    cdef const uint8_t* stop = facts.data + facts.size
    cdef Record record
    cdef Sizes unused
    memset(&unused, 0, sizeof(Sizes))
    for _ in range(facts.count):
        if read_record(&at, stop, facts, &record, &unused) != NULL:
            return  # never, since `measure` has read the same
        if not start <= record.offset < end:
            continue
        output.offsets[done.rows] = record.offset
        output.timestamps[done.rows] = record.timestamp
        if output.key_offsets != NULL:
            copy(record.key, record.key_length, done.rows, &done.key_bytes,
                 output.key_offsets, output.keys, output.key_validity)
        if output.value_offsets != NULL:
            copy(record.value, record.value_length, done.rows, &done.value_bytes,
                 output.value_offsets, output.values, output.value_validity)
        if output.list_offsets != NULL:
            fill_headers(&record, stop, done, output)
        done.rows += 1


cdef void fill_headers(Record* record, const uint8_t* stop, Totals* done, Output* output) noexcept nogil:
    cdef const uint8_t* at = record.headers
    cdef const uint8_t* field
    cdef int64_t length
    for _ in range(record.header_count):
        read_bytes(&at, stop, &field, &length)
        copy(field, length, done.headers, &done.header_key_bytes,
             output.header_key_offsets, output.header_keys, NULL)
        read_bytes(&at, stop, &field, &length)
        copy(field, length, done.headers, &done.header_value_bytes,
             output.header_value_offsets, output.header_values, output.header_value_validity)
        done.headers += 1
    output.list_offsets[done.rows + 1] = <int32_t>done.headers
    if output.list_validity != NULL and record.header_count > 0:
        output.list_validity[done.rows >> 3] |= <uint8_t>(1 << (done.rows & 7))


cdef inline void copy(
    const uint8_t* source, int64_t length, int64_t row, int64_t* used,
    int32_t* offsets, uint8_t* data, uint8_t* validity
) noexcept nogil:
    """One field into its column; a length of -1 is a null."""
    if length > 0:
        memcpy(data + used[0], source, length)
        used[0] += length
    offsets[row + 1] = <int32_t>used[0]
    if validity != NULL and length >= 0:
        validity[row >> 3] |= <uint8_t>(1 << (row & 7))


cdef inline bint read_bytes(
    const uint8_t** position, const uint8_t* end, const uint8_t** field, int64_t* length
) noexcept nogil:
    if not read_varint(position, end, length) or length[0] < -1 or length[0] > end - position[0]:
        return False
    field[0] = position[0]
    if length[0] > 0:
        position[0] += length[0]
    return True


cdef inline bint read_varint(const uint8_t** position, const uint8_t* end, int64_t* number) noexcept nogil:
    """A zigzag number of up to 64 bits; False when it does not end in time."""
    cdef const uint8_t* at = position[0]
    cdef uint64_t bits
    # Nearly all have one byte or two: that is most of what reading a record costs.
    if end - at >= 2:
        bits = at[0]
        if bits < 0x80:
            number[0] = <int64_t>(bits >> 1) ^ -<int64_t>(bits & 1)
            position[0] = at + 1
            return True
        if at[1] < 0x80:
            bits = bits & 0x7F | <uint64_t>at[1] << 7
            number[0] = <int64_t>(bits >> 1) ^ -<int64_t>(bits & 1)
            position[0] = at + 2
            return True
    return read_long_varint(position, end, number)


cdef bint read_long_varint(const uint8_t** position, const uint8_t* end, int64_t* number) noexcept nogil:
    cdef const uint8_t* at = position[0]
    cdef uint64_t bits = 0
    cdef int shift = 0
    cdef uint8_t byte
    while at < end:
        byte = at[0]
        at += 1
        if shift == 63 and byte > 1:
            return False
        bits |= <uint64_t>(byte & 0x7F) << shift
        if byte < 0x80:
            number[0] = <int64_t>(bits >> 1) ^ -<int64_t>(bits & 1)
            position[0] = at
            return True
        shift += 7
    return False


cdef inline int64_t held_sum(int64_t base, int64_t delta) noexcept nogil:
    """The sum, or the end of the range that it would pass."""
    if delta > 0 and base > INT64_LARGEST - delta:
        return INT64_LARGEST
    if delta < 0 and base < -INT64_LARGEST - delta:
        return -INT64_LARGEST
    return base + delta


cdef inline int64_t microseconds(int64_t timestamp_ms) noexcept nogil:
    if timestamp_ms > TIMESTAMP_MS_MAX:
        return TIMESTAMP_MS_MAX * 1000
    if timestamp_ms < -TIMESTAMP_MS_MAX:
        return -TIMESTAMP_MS_MAX * 1000
    return timestamp_ms * 1000
