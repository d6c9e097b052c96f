"""The protocol between brokers: frames, and the handshake that begins a connection.

frames        size, kind, version and checksum of a frame; what it says, and the records that it carries
fields        takes the fields of a frame's head, one after the other
frame_reader  cuts what arrives into frames
handshake     who is at the other end, and what one broker says to another that it does not talk to

A frame has a *head*, which says something and has a checksum, and *data*: record batches by reference, which have
checksums of their own. What the kinds of frames mean is known by those who use them (`broker/peers`).

Brokers of different versions talk to each other while a cluster is upgraded. Both say their version first; with
another major version there is no talk. A minor version adds *tagged fields* at the end of a head: whoever does not know
a tag passes over it. A kind of frame that the other's minor version does not have must not be sent to it.
"""
