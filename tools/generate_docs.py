"""Writes docs/generated/ from the tables in the code, so that the pages cannot say anything else.

    python tools/generate_docs.py

Settings are found, not listed: every `settings.py` of every room is asked for the settings classes it declares.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from dataclasses import is_dataclass
from pathlib import Path

import zurau
from zurau.settings import Setting, settings_of
from zurau.wire.kafka.apis import APIS

GENERATED = Path(__file__).parents[1] / "docs" / "generated"
_NOTE = "<!-- Written by `make docs`; change the code instead. -->\n"


def pages() -> dict[Path, str]:
    """Every generated page and what it should say."""
    return {GENERATED / "apis.md": apis_page(), GENERATED / "settings.md": settings_page()}


def apis_page() -> str:
    lines = [
        _NOTE,
        "# The APIs that are served\n",
        "One row an API, from `src/zurau/wire/kafka/apis.py`. A broker advertises the versions in the last column;",
        "where that range begins lower than what is served, it is because clients look for it before they turn a",
        "feature on.\n",
        "| key | API | versions served | versions advertised |",
        "|----:|-----|-----------------|---------------------|",
    ]
    for key, api in sorted(APIS.items()):
        lines.append(f"| {key} | {api.name} | {api.first} to {api.last} | {api.advertised_first} to {api.last} |")
    return "\n".join(lines) + "\n"


def settings_page() -> str:
    lines = [
        _NOTE,
        "# Settings\n",
        "Every setting has the name that Kafka's tools know it by. Names that Kafka does not have are our own.\n",
    ]
    for cls in _settings_classes():
        lines += [f"## {cls.__name__}\n", inspect.getdoc(cls) or "", ""]
        lines += ["| setting | default | allowed | what it does |", "|---------|---------|---------|--------------|"]
        lines += [_row(declared) for _, declared in sorted(settings_of(cls).items())]
        lines.append("")
    return "\n".join(lines)


def _settings_classes() -> Iterator[type]:
    for module_info in pkgutil.walk_packages(zurau.__path__, "zurau."):
        if module_info.name.endswith(".settings"):
            module = importlib.import_module(module_info.name)
            for _, cls in inspect.getmembers(module, inspect.isclass):
                if cls.__module__ == module_info.name and is_dataclass(cls) and settings_of(cls):
                    yield cls


def _row(declared: Setting) -> str:
    name = f"`{declared.kafka_name}`"
    if declared.broker_name != declared.kafka_name:
        name += f" (for all topics: `{declared.broker_name}`)"
    return f"| {name} | `{declared.text(declared.default)}` | {_allowed(declared)} | {declared.doc} |"


def _allowed(declared: Setting) -> str:
    if declared.choices:
        return ", ".join(f"`{choice}`" for choice in declared.choices)
    if declared.kind is bool:
        return "`true`, `false`"
    if declared.at_least is not None and declared.at_most is not None:
        return f"{declared.at_least} to {declared.at_most}"
    if declared.at_least is not None:
        return f"{declared.at_least} or more"
    if declared.at_most is not None:
        return f"{declared.at_most} or less"
    return ""


def main() -> None:
    GENERATED.mkdir(parents=True, exist_ok=True)
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(GENERATED.parents[1]))


if __name__ == "__main__":
    main()
