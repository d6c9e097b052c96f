"""The controller: what the cluster is, as a machine on the metadata log.

Brokers, topics, where their replicas live, who leads and is in sync where the controller says so, settings that were
changed while running, and which producer ids are taken. `image.py` is the applied state that everyone else reads;
`commands.py` is what may be asked; `records.py` is what the log holds; `topics.py`, `configs.py`, `producer_ids.py`,
`brokers.py` and `in_sync.py` decide, one concern each; `sessions.py` is what the controller has heard of brokers, and
the only thing that is not in the log; and `replay.py` is the only place where the image changes.

Laws: whatever a command asks is checked here, not in the handlers, because only here is it checked against the state
that it changes. A refused command leaves no record, with one exception (`alter_partition`). Of a decision's records a
crash may leave the first few alone, so they are in an order in which that does no harm.
"""
