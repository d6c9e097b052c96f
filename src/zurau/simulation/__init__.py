"""`node/` again, invented: the same ports with time, disk, threads and network that a seed decides.

Nouns: *virtual clock* (moves only when told), *simulated disk* (forgets what was not flushed when it crashes), *world*
(all ports together). Laws: nothing here reads the real time or sleeps; of all threads one runs at a time; the same seed
gives the same history.
"""
