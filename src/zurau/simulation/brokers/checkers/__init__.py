"""What must be true of every step of every replica, and of what brokers say to each other: see docs/simulation.md."""
