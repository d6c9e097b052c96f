"""What the values of a topic look like, told from a sample, without Spark: for `zurau pipeline init`.

A *guess* is a format and the keys that a source of that format needs. Guesses are tried from the most telling to the
least (Avro, JSON, known logs, CSV, text), and the first that nearly all values fit is taken.
"""
