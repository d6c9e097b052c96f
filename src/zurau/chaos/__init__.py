"""Real brokers that have a bad day while real clients use them, and whether all that was promised was kept.

- `history`: what clients were told, and whether it fits together. No clock, no I/O.
- `downtime`: for how long a client could not write to a partition. No clock, no I/O.
- `faults`: what can go wrong, how it is done to real processes, and how it ends.
- `load`, `librdkafka`: producers and consumers that tell the history everything.
- `experiment`: a cluster, its load, and faults drawn from a seed, one after the other.
- `report`: the table.

The simulator (`simulation/`) finds what depends on the order of events, and can show it again. What it cannot know is
whether real sockets, processes, disks and other people's clients behave as it supposes: that is seen here. The rules
are the same, and so is the code that holds clients' histories against them.
"""
