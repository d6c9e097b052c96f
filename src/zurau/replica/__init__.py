"""How the replicas of a partition agree.

Nouns: *replica* (one copy, on one broker), *leader epoch* (who leads, counted up), *high watermark* (how far the copies
are safe). Laws: no clock, socket, disk or randomness of its own; offsets below the high watermark never change; a
replica is counted only for what it has stored as durably as the topic asks.

One broker is a quorum of one: the same arithmetic, with a single voter that elects itself.
"""
