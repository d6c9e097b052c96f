"""Logs of many sources: error rates, latencies, talkers, sessions, alerts, and a lake with everything."""
