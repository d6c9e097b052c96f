"""How the messages of fetch sessions are laid out in the head of a frame.

    session header | replicas | closed partitions | runs | tagged fields

Messages of one kind that follow each other are a *run*: its kind, how many they are, a row for each, and what belongs
to them and has no fixed size, in columns (all marks of the run, then all its batches, ...). So a run of a hundred
fetches is packed and taken by one layout. The bytes of the batches are the data of the frame, in their order.

Replicas are named once, in a table; everybody else names them by their place in it. Where there may be none, 0 is none
and all others are one more.
"""

from __future__ import annotations

import struct

#: The client's session, number, the server's session or -1, flags, how many replicas, closed partitions and runs.
SESSION = struct.Struct(">qqqBIII")
IS_UNKNOWN = 1

#: Its broker, and the length of its directory, which follows.
REPLICA = struct.Struct(">iH")
PARTITION = struct.Struct(">16si")
PLACE = struct.Struct(">I")

#: Kind and number of rows.
RUN = struct.Struct(">BI")
FETCH, FETCHED, REFUSED, HIGH_WATERMARK, VOTE, VOTE_ANSWER, BEGIN_EPOCH, END_EPOCH = range(1, 9)

# Every row begins with: topic id, partition, sender, epoch.
#: fetch id, position (epoch, offset), high watermark, broker epoch, log start, bytes loaded of a snapshot
FETCH_ROW = struct.Struct(">16siIiqiqqqqq")
#: fetch id, high watermark, log start, marks, batches, flags
FETCHED_ROW = struct.Struct(">16siIiqqqIIB")
#: fetch id, leader or none
REFUSED_ROW = struct.Struct(">16siIiqI")
#: fetch id, high watermark
HIGH_WATERMARK_ROW = struct.Struct(">16siIiqq")
#: voter, position, whether it is a pre-vote
VOTE_ROW = struct.Struct(">16siIiIiq?")
#: whether it is granted, whether it is a pre-vote, leader or none
VOTE_ANSWER_ROW = struct.Struct(">16siIi??I")
BEGIN_EPOCH_ROW = struct.Struct(">16siIi")
#: successors
END_EPOCH_ROW = struct.Struct(">16siIiI")

# What belongs to a run of `Fetched`, behind its rows: how many marks and batches; all marks; all batches; the voters of
# batches that change them; and for each row where logs diverge (a position), and the snapshot (a mark and voters).
FETCHED_COLUMNS = struct.Struct(">II")
DIVERGES, HAS_SNAPSHOT = 1, 2
#: Also a position: epoch and offset.
MARK = struct.Struct(">iq")
#: epoch, base offset, offsets, bytes, whether it changes the voters
BATCH = struct.Struct(">iqQI?")
