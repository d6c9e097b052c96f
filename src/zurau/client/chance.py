"""The client's own chance: a program that has seeded Python's shared one wants its numbers for itself.

Whoever wants a client to do the same again seeds this one: `chance.seed(7)`.
"""

from __future__ import annotations

import random

chance = random.Random()  # noqa: S311 - nothing secret
