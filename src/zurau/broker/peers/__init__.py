"""Other brokers, as bytes.

layouts, encoding, decoding    the messages of fetch sessions <-> frames; batches by reference
checking                       whether batches that came are the ones that were sent
acquaintance                   whom a broker talks to
connection                     one connection: handshake, frames, how much may be under way
connections                    all of them, one for each other broker: dials, replaces, gives up

Nothing here opens a socket: `node/peers.py` brings the real ones and the simulator invented ones, on the same code. One
connection carries both directions of two brokers' sessions. Nobody acknowledges frames: what is lost is lost with its
connection, and the sessions, which are told, ask again. They are also the sign of life.
"""
