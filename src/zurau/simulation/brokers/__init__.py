"""Whole brokers from one seed: the real ones, on simulated clocks, disks, threads and network, with real frames."""
