"""A log that several brokers agree on.

Nouns: *partition* (append and read with Kafka's rules), *waiter* (someone who waits for the high watermark to reach an
offset), *producer state* (what makes a retry harmless), *host* (runs a machine on a partition).

Laws: consumers see nothing at or above the high watermark; a batch is checked before it is stamped and stamped before
it is written; an acks=all produce, a long-polling fetch and a machine's parked reply all wait in the same way.
"""
