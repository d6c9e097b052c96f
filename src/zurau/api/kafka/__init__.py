"""Kafka's questions, in files that carry Kafka's own names for them; `dispatch.py` is the one table."""
