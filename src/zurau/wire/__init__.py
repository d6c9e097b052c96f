"""Bytes to values and back, for every protocol that Zurau speaks.

Nothing here reads a socket or knows what a message is for: whoever has bytes gets values, whoever has values gets
bytes. What comes from a peer is trusted in nothing: it decodes, or it is a `ProtocolViolation`; and what is made in
decoding is bounded by the bytes that came. Record batches pass through as they are, neither copied nor looked into.
"""
