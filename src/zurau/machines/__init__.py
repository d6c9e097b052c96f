"""State that is replayed from a log: the shape (`machine.py`) and its instances.

Nouns: *command* (what is asked), *decision* (records and replies), *machine* (decides and applies). Laws: durable state
changes only by applying records; no clock, randomness, file or socket; machines know nothing of each other, nor of the
partition that hosts them.
"""
