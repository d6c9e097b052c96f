"""Whole clusters of replicas in one process, from one seed.

Nouns: *swarm* (what a seed decides), *node* (a broker's power, clock and sessions), *host* (a replica's place on it:
a disk that outlives the replica), *fault* (something that happens to the world at a time), *checker* (an invariant with
a name), *transcript* (what happened, in words).
Laws: first faults, then calm, in which the cluster has to become whole again; a checker looks at what is on the disks,
not at what a replica believes; the same seed gives the same history on every Python and with every hash seed.
"""
