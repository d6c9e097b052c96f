"""Consumer groups: who reads what, and how far they have come.

Nouns: a *group* has *members*; a *generation* is one agreement among them about who owns which partitions; one of
them is the *leader*, which computes it; a *committed offset* is how far the group has read. A *static* member has an
instance id and keeps its place across restarts; a *pending* one was given an id and has not joined with it yet.

`machine.py` is the door; `joining.py`, `rebalance.py` and `sessions.py` are the life of a group (Kafka's classic
protocol), `offsets.py` and `removal.py` what it leaves behind, `records.py` what the log holds.

Laws: subscriptions and assignments are opaque (we only look into them to tell which topics are in use). A share is
handed out only in the generation it was computed for, and only once the log has it. Every command is answered. No file
here reads a clock or makes up an id: times and fresh ids come in with the command.
"""
