"""Between record batches of the log and those of Arrow: columns, and the loops that fill them and pack them.

The loops are compiled where that is possible (`_decode`, `_encode`); their plain twins give the same bytes.
"""
