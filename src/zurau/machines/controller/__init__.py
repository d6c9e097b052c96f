"""The controller: what the cluster is, as a machine on the metadata log.

Brokers, topics, where their replicas live, settings that were changed while running, and which producer ids are
taken. `image.py` is the applied state that everyone else reads; `commands.py` is what may be asked; `records.py` is
what the log holds; `topics.py`, `configs.py`, `producer_ids.py` and `brokers.py` decide, one concern each; and
`replay.py` is the only place where the image changes.

Laws: whatever a command asks is checked here, not in the handlers, because only here is it checked against the state
that it changes. A refused command leaves no record. A command leaves at most one record, so half of it is never true.
"""
