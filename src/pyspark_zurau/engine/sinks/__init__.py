"""Where rows go: each kind of sink says how a streaming query writes to it.

All but topics are written batch by batch, each batch in one step that is recognised when Spark runs it again, so every
row is there exactly once. Topics are written at least once.
"""
