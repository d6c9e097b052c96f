"""The command line. Everything but `serve` and `log` speaks only the wire, so it works with Apache Kafka too.

One file per command or group of commands; `options.py` has the options they share, `output.py` the ways to print.

Laws: results go to stdout and everything else to stderr; errors are one line and exit with 1, wrong usage with 2;
JSON keys do not change; nothing is imported before a command needs it, so `zurau --help` and scripts stay quick.
"""
