"""Pipelines that come ready made, one directory each, run by their names: `zurau pipeline run logs`.

A directory holds the pipeline itself (`pipeline.toml`, and a little Python where SQL does not reach) and a generator of
test data (`generate.py`). Generated data is made from a seed, and is bad on purpose: some of it late, some of it twice,
some of it broken. Who made it knows exactly what must come out, and tests compare with that.
"""
