"""Records that a topic no longer has, read from the lake that the archive pipeline has put them into.

A record has its place by partition and offset, in the topic and in the lake alike. So whoever reads a range of offsets
takes what the topic has from the topic, and what retention took away from the lake: each record once.
"""
