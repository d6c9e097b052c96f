"""How the replicas of a partition agree: a sans-IO core.

Nouns: *replica* (one copy, in one directory of one broker), *epoch mark* (where a leader epoch begins in the log; it
has no width: `zurau/epochs.py`), *position* (last epoch and end offset), *voter*, *in-sync set*, *high watermark* (how
far the copies are safe), *session* (what two brokers tell each other about all their partitions).

    core/       events, effects and messages; what a follower and a leader do in either mode; what a log has to offer
    quorum/     replicas elect their leader, and a majority of voters commits (Raft, pull-based as in KRaft)
    in_sync/    a controller names the leader and the in-sync set, and all of the set commit (Kafka's ISR)
    session/    fetch sessions between brokers: one request and one response for all partitions
    lone.py     one broker is a quorum of one: what `partition/` uses today

Laws: no clock, socket, disk or randomness of its own; a batch is bytes with an offset and a count; what must be durable
comes before what is sent (`core/effects.py`); offsets below the high watermark never change; a replica is counted only
for what it has stored as durably as the topic asks. docs/replication.md gives the rules with their reasons.
"""
