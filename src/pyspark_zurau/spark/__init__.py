"""The Spark session around the queries: which Java, which Python, which settings; and one driver for each checkpoint.

A session is started anew, or it is one of a *host*, a process that keeps Spark running for others.
"""
