"""Pipelines that are declared in a TOML file, and run by Spark.

A *pipeline* has *sources* (topics, and how their values are read), *steps* (Spark SQL, or a function of the user's) and
*sinks*. Sources and steps are names in SQL; a sink is one streaming query with a checkpoint of its own. What a source
cannot read goes to its *dead letters*, by a query that does nothing else.

Laws: nothing that Spark does is written again here. Nothing is dropped in silence. All mistakes in a file are told at
once, each with its place and what to do. Reading and checking the file needs no Spark.
"""
