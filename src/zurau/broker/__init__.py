"""What lives in this process.

Nouns: *broker* (the partitions and machines of this process), *identity* (who this broker is, kept in its directory),
*placement* (opens and closes partitions as the cluster image says), *upkeep* (retention, compaction, expiry).

Laws: the cluster image decides what lives here; data that the image does not know is put aside, never deleted.
"""
