"""A small Kafka client on our own codecs: what the command line and the Spark source are made of.

It speaks only the wire, so it works with Apache Kafka (3.0 and newer) as it does with Zurau. It is synchronous and
meant for one thread: nothing happens behind the caller's back except a group member's heartbeat. Speed comes from
large batches and from sending the next request before the last answer has been looked at.

- `security`: settings that clients know from Kafka, TLS, logging in.
- `cluster`: `Cluster` knows who leads what and who coordinates whom, has a connection to each, and the one retry loop.
- `producer`, `consumer`: records out and in, from partitions that are named.
- `groups`: `GroupConsumer` shares partitions with others, `GroupAdmin` looks at groups from outside.
- `admin`: `Admin` for topics, settings and the cluster. `offsets`: what partitions hold, by place or by time.
- `aio`: the same for asyncio, with one thread for each object.

Laws: each folder uses only those above it; every wait has a deadline; every error (errors.py) says what to do next;
nothing here imports the broker.
"""
