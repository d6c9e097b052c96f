"""Which of the inner loops are compiled here. Those that are not are served by plain Python, slower and the same."""

from __future__ import annotations

from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from pathlib import Path

#: By what they do. Only looked for, not imported: nothing in Zurau needs Spark.
MODULES = {
    "the broker's walk over records": "zurau/records/_walk",
    "decoding for Spark": "pyspark_zurau/arrow/_decode",
    "encoding for Spark": "pyspark_zurau/arrow/_encode",
}


def compiled_text() -> str:
    plain = [what for what, module in MODULES.items() if not _is_compiled(module)]
    if not plain:
        return "compiled"
    return f"not compiled: {', '.join(plain)}; install a C compiler and then Zurau again"


def _is_compiled(module: str) -> bool:
    package, _, rest = module.partition("/")
    found = find_spec(package)
    places = (found.submodule_search_locations or ()) if found else ()
    return any(Path(place, rest + suffix).is_file() for place in places for suffix in EXTENSION_SUFFIXES)
