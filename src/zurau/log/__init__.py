"""One replica's bytes on one disk.

Nouns: *log* (a partition's batches in order of offset), *segment* (a stretch of it in one file), *index* (some places
in a segment, by offset and by time), *epochs* (where each leader's reign begins). Files are Kafka's, to the byte.

Laws:
- An append is one write of the bytes it was given. It happens wholly or not at all.
- What was flushed is never lost or changed by a crash; what was not may be cut, but only from the end.
- What a disk loses or changes all the same is *damage*: it is named, refused to readers, and never cut.
- An index entry reaches the disk only after the data before it was flushed, so recovery trusts a segment up to its
  last index entry and checks every byte after it.
- Nothing here blocks the caller unless its docstring says so: flushing, removing and compacting are work that is
  handed out, run in a worker, and concluded back on the loop.
- Must never: know of replicas, clients or protocols; read the clock; skip over damage without saying so.
"""
