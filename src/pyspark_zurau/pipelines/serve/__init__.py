"""The newest state of every key in a table of Postgres, for whoever asks by key."""
