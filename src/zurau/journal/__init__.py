"""What a broker remembers of its logs and replicas beside them.

A log cannot tell by itself whether its end was torn by a crash or lost by its disk. The journal can: it is one small
file in the data directory that says how often the broker started, on which boot of the machine, how far each log was
flushed, and where each one ended when the broker stopped in good order. It also holds what each replica has promised:
its epoch and vote, its voters, its name, its high watermark, and the epoch marks that its log's file does not have yet.
One flush serves the votes and marks of a thousand partitions.

Nouns: *journal* (the file and what it says), *record* (one thing it says), *frame* (records that are committed
together, under one checksum).

Laws:
- What it says of a log is never more than is true: a position is recorded after its flush, and before a log is cut
  shorter its position is lowered, durably.
- Positions are a lower bound: nobody waits for them, and they are written some ten times a second while they move.
- A promise is safe before anybody is told of it.
- What cannot be read counts as not known.
- Must never cost anything for a log that nobody writes to.
"""
