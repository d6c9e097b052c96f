# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The walker of `pure_walk.py` in C: the same verdicts, a few nanoseconds for each record.

The interpreter's lock is released for what takes a while, and kept for what does not: taking it back costs more than
a small batch.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytearray cimport PyByteArray_FromStringAndSize
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.memoryview cimport PyMemoryView_FromMemory
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

cdef enum:
    PLACES_MAX = 1000
    RECORD_BYTES_MIN = 7
    UNLOCKED_FROM_BYTES = 65536

# As in `pure_walk.py`, which says what they mean.
cdef enum:
    SOUND = 0
    KEYLESS = 1
    MISTIMED = 2
    COUNT = 4
    RECORD_LENGTH = 5
    TIMESTAMP = 6
    OFFSET = 7
    KEY = 8
    VALUE = 9
    HEADERS = 10
    LEFT_OVER = 11
    IMPOSSIBLE_TIME = 12

cdef enum:
    HEADER_BYTES = 61
    LENGTH_PREFIX_BYTES = 12
    MAGIC = 2

cdef int64_t LARGEST = 0x7FFFFFFFFFFFFFFF
cdef int64_t SMALLEST = -LARGEST - 1

cdef struct Asked:
    const uint8_t* data
    int64_t size
    int64_t count
    int64_t base_timestamp
    int64_t earliest
    int64_t latest
    bint needs_keys

cdef struct Found:
    int fault
    int64_t max_timestamp
    int place_count
    int64_t places[PLACES_MAX]


def walk(payload, int64_t count, int64_t base_timestamp, int64_t earliest, int64_t latest, bint needs_keys):
    """See `pure_walk.walk`."""
    cdef Py_buffer view
    cdef Asked asked
    cdef Found found
    PyObject_GetBuffer(payload, &view, PyBUF_SIMPLE)
    try:
        asked.data = <const uint8_t*>view.buf
        asked.size = view.len
        asked.count = count
        asked.base_timestamp = base_timestamp
        asked.earliest = earliest
        asked.latest = latest
        asked.needs_keys = needs_keys
        if asked.size >= UNLOCKED_FROM_BYTES:
            with nogil:
                go(&asked, &found)
        else:
            go(&asked, &found)
    finally:
        PyBuffer_Release(&view)
    if found.fault == SOUND:
        return 0, (), found.max_timestamp
    return found.fault, tuple([found.places[index] for index in range(found.place_count)]), found.max_timestamp


def plain_header(batch, int64_t max_bytes, int64_t earliest, int64_t latest, bint needs_keys):
    """The fields of a batch's header if the batch is as most are: whole, not packed, from offset 0 on, and all records
    sound; or None, and `admission.py` looks at everything by itself. The checksum is not looked at."""
    cdef Py_buffer view
    cdef Asked asked
    cdef Found found
    cdef const uint8_t* at
    cdef int64_t last_delta, producer_id
    PyObject_GetBuffer(batch, &view, PyBUF_SIMPLE)
    try:
        at = <const uint8_t*>view.buf
        if view.len < HEADER_BYTES or view.len > max_bytes or at[16] != MAGIC:
            return None
        asked.count = signed(at + 57, 4)
        last_delta = signed(at + 23, 4)
        producer_id = signed(at + 43, 8)
        if (
            signed(at, 8) != 0
            or signed(at + 8, 4) + LENGTH_PREFIX_BYTES != view.len
            or signed(at + 21, 2) != 0
            or asked.count < 1
            or last_delta != asked.count - 1
            or producer_id >= 0 and (signed(at + 51, 2) < 0 or signed(at + 53, 4) < 0)
        ):
            return None
        asked.data = at + HEADER_BYTES
        asked.size = view.len - HEADER_BYTES
        asked.base_timestamp = signed(at + 27, 8)
        asked.earliest = earliest
        asked.latest = latest
        asked.needs_keys = needs_keys
        go(&asked, &found)
        if found.fault != SOUND or found.max_timestamp != signed(at + 35, 8):
            return None
        return (
            0, view.len, signed(at + 12, 4), MAGIC, <uint32_t>signed(at + 17, 4), 0, last_delta, asked.base_timestamp,
            found.max_timestamp, producer_id, signed(at + 51, 2), signed(at + 53, 4), asked.count,
        )
    finally:
        PyBuffer_Release(&view)


cdef inline int64_t signed(const uint8_t* at, int size) noexcept nogil:
    """A big-endian number of so many bytes."""
    cdef uint64_t bits = 0
    cdef int index
    for index in range(size):
        bits = bits << 8 | at[index]
    return <int64_t>(bits << (64 - 8 * size)) >> (64 - 8 * size)


def new_buffer(int64_t size):
    """Memory that nobody has written to. Filling a hundred megabytes with zeros would stop all threads for long."""
    return PyByteArray_FromStringAndSize(NULL, size)


def filled(int64_t size, fill):
    """See `buffers.pure_filled`. The bytes are nobody else's before they are returned."""
    cdef bytes data = PyBytes_FromStringAndSize(NULL, size)
    view = PyMemoryView_FromMemory(PyBytes_AS_STRING(data), size, PyBUF_WRITE)
    try:
        count = fill(view)
    finally:
        view.release()
    return data if count == size else data[:count]


def find_time(
    payload, int64_t count, int64_t base_timestamp, int64_t first, int64_t end, int64_t at_least, *, bint latest
):
    """See `pure_walk.find_time`."""
    cdef Py_buffer view
    cdef int64_t offset = -1
    cdef int64_t timestamp = 0
    cdef bint is_found
    PyObject_GetBuffer(payload, &view, PyBUF_SIMPLE)
    try:
        with nogil:
            is_found = search(
                <const uint8_t*>view.buf, <const uint8_t*>view.buf + view.len, count, base_timestamp, first, end,
                at_least, latest, &offset, &timestamp,
            )
    finally:
        PyBuffer_Release(&view)
    return (offset, timestamp) if is_found else None


cdef bint search(
    const uint8_t* at, const uint8_t* stop, int64_t count, int64_t base_timestamp, int64_t first, int64_t end,
    int64_t at_least, bint latest, int64_t* found_offset, int64_t* found_timestamp
) noexcept nogil:
    cdef const uint8_t* after
    cdef int64_t index, number, offset, timestamp
    cdef bint is_found = False
    for index in range(count):
        if not read_int(&at, stop, &number) or number < 1 or number > stop - at:
            break
        after = at + number
        at += 1
        if not read_long(&at, after, &number) or not read_int(&at, after, &offset):
            break
        at = after
        if not sum_fits(base_timestamp, number):
            continue
        timestamp = base_timestamp + number
        if first <= offset < end and timestamp >= at_least:
            found_offset[0] = offset
            found_timestamp[0] = timestamp
            is_found = True
            if not latest or timestamp == LARGEST:
                break
            at_least = timestamp + 1
    return is_found


cdef void go(Asked* asked, Found* found) noexcept nogil:
    cdef const uint8_t* at = asked.data
    cdef const uint8_t* stop = asked.data + asked.size
    cdef int64_t place
    cdef int64_t timestamp = 0
    cdef bint has_key = False
    cdef int fault
    found.fault = SOUND
    found.max_timestamp = -1
    found.place_count = 0
    if asked.count < 0 or asked.count > asked.size // RECORD_BYTES_MIN:
        found.fault = COUNT
        return
    for place in range(asked.count):
        fault = read_record(&at, stop, place, asked.base_timestamp, &timestamp, &has_key)
        if fault != SOUND:
            found.fault = fault
            found.places[0] = place
            found.place_count = 1
            return
        if timestamp > found.max_timestamp:
            found.max_timestamp = timestamp
        if asked.needs_keys and not has_key:
            fault = KEYLESS
        elif timestamp != -1 and (timestamp < asked.earliest or timestamp > asked.latest):
            fault = MISTIMED
        else:
            continue
        found.fault |= fault
        if found.place_count < PLACES_MAX:
            found.places[found.place_count] = place
            found.place_count += 1
    if at != stop:
        found.fault = LEFT_OVER
        found.place_count = 0


cdef inline int read_record(
    const uint8_t** position, const uint8_t* stop, int64_t place, int64_t base_timestamp, int64_t* timestamp,
    bint* has_key
) noexcept nogil:
    """Go over one record. What is wrong with it, or SOUND."""
    cdef const uint8_t* at = position[0]
    cdef const uint8_t* end
    cdef int64_t number
    if not read_int(&at, stop, &number) or number < 1 or number > stop - at:
        return RECORD_LENGTH
    end = at + number
    at += 1  # the attributes, which nothing uses
    if not read_long(&at, end, &number):
        return TIMESTAMP
    if not sum_fits(base_timestamp, number):
        return IMPOSSIBLE_TIME
    timestamp[0] = base_timestamp + number
    if not read_int(&at, end, &number) or number != place:
        return OFFSET
    if not skip_bytes(&at, end, &number):
        return KEY
    has_key[0] = number >= 0
    if not skip_bytes(&at, end, &number):
        return VALUE
    if at == end:
        return HEADERS
    if at[0] == 0:
        at += 1
    elif not skip_headers(&at, end):
        return HEADERS
    if at != end:
        return RECORD_LENGTH
    position[0] = at
    return SOUND


cdef inline bint sum_fits(int64_t base, int64_t delta) noexcept nogil:
    return base <= LARGEST - delta if delta >= 0 else base >= SMALLEST - delta


cdef bint skip_headers(const uint8_t** position, const uint8_t* end) noexcept nogil:
    cdef int64_t count, length
    cdef int64_t index
    if not read_int(position, end, &count) or count < 0 or count > end - position[0]:
        return False
    for index in range(count):
        if not skip_bytes(position, end, &length) or length < 0:
            return False
        if not is_utf8(position[0] - length, length) or not skip_bytes(position, end, &length):
            return False
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


cdef inline bint skip_bytes(const uint8_t** position, const uint8_t* end, int64_t* length) noexcept nogil:
    """Go over a field and its length; -1 stands for null."""
    if not read_int(position, end, length) or length[0] < -1 or length[0] > end - position[0]:
        return False
    if length[0] > 0:
        position[0] += length[0]
    return True


cdef inline bint read_int(const uint8_t** position, const uint8_t* end, int64_t* number) noexcept nogil:
    """A zigzag number of up to 32 bits in up to five bytes."""
    cdef const uint8_t* at = position[0]
    cdef uint32_t bits
    cdef int shift = 7
    if at == end:
        return False
    bits = at[0]
    at += 1
    if bits >= 0x80:  # most are smaller
        bits &= 0x7F
        while True:
            if at == end or shift == 28 and at[0] > 0x0F:
                return False
            bits |= <uint32_t>(at[0] & 0x7F) << shift
            shift += 7
            at += 1
            if (at - 1)[0] < 0x80:
                break
    number[0] = <int64_t>(bits >> 1) ^ -<int64_t>(bits & 1)
    position[0] = at
    return True


cdef inline bint read_long(const uint8_t** position, const uint8_t* end, int64_t* number) noexcept nogil:
    """A zigzag number of up to 64 bits in up to ten bytes."""
    cdef const uint8_t* at = position[0]
    cdef uint64_t bits = 0
    cdef int shift = 0
    while True:
        if at == end or shift == 63 and at[0] > 1:
            return False
        bits |= <uint64_t>(at[0] & 0x7F) << shift
        shift += 7
        at += 1
        if (at - 1)[0] < 0x80:
            break
    number[0] = <int64_t>(bits >> 1) ^ -<int64_t>(bits & 1)
    position[0] = at
    return True
