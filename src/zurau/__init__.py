"""Zurau: a distributed, replicated commit log that speaks the Apache Kafka protocol.

ARCHITECTURE.md is the map of the rooms; each room's `__init__.py` is the sign on its door.
"""

__version__ = "0.1.0"
