"""`node/` again, invented: the same ports with time, disk and threads that a seed decides.

Nouns: *virtual clock* (moves only when told), *simulated disk* (forgets what was not flushed when it crashes), *world*
(all ports together). Laws: nothing here reads the real time, sleeps or starts a thread; the same seed gives the same
history.
"""
