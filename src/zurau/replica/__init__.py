"""How the replicas of a partition agree.

Nouns: *replica* (one copy, in one directory of one broker), *epoch mark* (where a leader's reign begins in the log; it
has no width), *position* (last mark and end), *voter*, *in-sync set*, *high watermark* (how far the copies are safe).

    replica.py            quorum mode: told an event, it says the effects; roles.py has the table of what it becomes
    in_sync_replica.py    in-sync mode: the same events and effects, and a controller in the place of votes
    sessions.py            everything that replicas of one broker say to those of another, in one stream (session.py)
    lone.py               one broker is a quorum of one: what `partition/` uses today

Laws: no clock, socket, disk or randomness of its own; a batch is bytes with an offset and a count; what must be durable
stands before what is said (effects.py); offsets below the high watermark never change; a replica is counted only for
what it has stored as durably as the topic asks. docs/replication.md gives the rules with their reasons.
"""
