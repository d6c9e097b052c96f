"""What a query asked of the source or the sink: options, read and checked in one place, before any broker is asked.

Nouns: *values* (options as Spark hands them over), a *peer* (a cluster and how to log in there), a *selection* (which
partitions), a *limit* (where reading begins or ends), *offsets* (how far each partition is).
"""
