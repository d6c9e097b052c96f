"""What lives in this process.

Nouns: *broker* (the partitions and machines of this process), *identity* (who this broker is, kept in its directory),
*placement* (opens and closes partitions as the cluster image says), *upkeep* (retention, compaction, expiry), *caller*
and *authorization* (who asks, and whether it may). Operations that every front end shares are here too: *config
entries*, *leadership*, *offset lookup*, *auto-create*.

Laws: the cluster image decides what lives here; data that the image does not know is put aside, never deleted.
"""
