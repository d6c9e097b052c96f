"""What belongs to a Python worker of Spark, reading or writing: connections it keeps, and how it tells errors."""
