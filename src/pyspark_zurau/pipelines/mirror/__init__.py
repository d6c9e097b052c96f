"""Topics of one cluster, copied to another: Zurau or Apache Kafka, either way."""
