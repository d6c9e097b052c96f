"""A small Kafka client on our own codecs: what the command line and the Spark source are made of.

It speaks only the wire, so it works with Apache Kafka (3.0 and newer) as it does with Zurau. It is synchronous and
meant for one thread: nothing happens behind the caller's back except a group member's heartbeat. Speed comes from
large batches and from sending the next request before the last answer has been looked at.

- `Connection`: one socket; requests out, answers back in order; versions negotiated.
- `Cluster`: who leads what, who coordinates whom, connections to all of them, and the one retry loop.
- `Producer`, `Consumer`, `GroupConsumer`: records in and out.
- `Admin`, `GroupAdmin`: topics, settings and the cluster; groups and their offsets.

Laws: every wait has a deadline; every error (errors.py) says what to do next; nothing here imports the broker.
"""
