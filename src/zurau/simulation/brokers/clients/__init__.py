"""Clients of simulated brokers: coroutines that speak the real codecs, try again, and check what they are told."""
