"""Writing to topics: a task packs its rows into record batches and is done when all are acknowledged."""
