"""Quorum mode: replicas elect their leader, and a majority of voters commits."""
