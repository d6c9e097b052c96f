"""Writes docs/generated/ from the tables in the code, so that the pages cannot say anything else.

python tools/generate_docs.py
"""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

from zurau.machines.controller.dynamic import DynamicBrokerSettings, DynamicTopicSettings
from zurau.node.settings import all_settings
from zurau.replica.core.roles import TRANSITIONS
from zurau.settings import Setting, settings_of
from zurau.wire.kafka.apis import APIS

GENERATED = Path(__file__).parents[1] / "docs" / "generated"
_TITLES = {"node": "The process", "broker": "The broker", "log": "Topics", "groups": "Consumer groups"}
_NOTE = "<!-- Written by `make docs`; change the code instead. -->\n"


def pages() -> dict[Path, str]:
    """Every generated page and what it should say."""
    return {
        GENERATED / "apis.md": apis_page(),
        GENERATED / "settings.md": settings_page(),
        GENERATED / "replica-roles.md": roles_page(),
    }


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


def roles_page() -> str:
    """The state table of a replica that votes."""
    lines = [
        _NOTE,
        "# The roles of a replica\n",
        "From `src/zurau/replica/core/roles.py`. A replica starts as a follower; what is not here cannot happen.\n",
        "| role | what happens | becomes |",
        "|------|--------------|---------|",
    ]
    lines += [f"| {role} | {cause} | {after} |" for (role, cause), after in TRANSITIONS.items()]
    return "\n".join(lines) + "\n"


def settings_page() -> str:
    lines = [
        _NOTE,
        "# Settings\n",
        "`zurau serve` takes each of them as a flag (`--num-partitions 3`), as an environment variable",
        "(`ZURAU_NUM_PARTITIONS=3`) and as a line of a TOML file (`num_partitions = 3`, given with `--config FILE`).",
        "Kafka's own names are understood in the file too, and are what Kafka's tools show. What a topic can set for",
        "itself is under *Topics*; there the broker's value is the default of every topic.\n",
    ]
    for part, settings in groupby(all_settings(), key=lambda setting: setting[0]):
        lines += [f"## {_TITLES[part]}\n"]
        lines += ["| flag | Kafka's name | default | allowed | what it does |", "|---|---|---|---|---|"]
        lines += sorted(_row(declared) for _, declared in settings)
        lines.append("")
    lines += [
        "## While running\n",
        "Set on one broker or topic, with `kafka-configs` or Zurau's own commands, and not when a broker starts.\n",
        "| name | default | allowed | what it does |",
        "|---|---|---|---|",
    ]
    for declared in (*settings_of(DynamicBrokerSettings).values(), *settings_of(DynamicTopicSettings).values()):
        default = declared.text(declared.default)
        shown = f"`{default}`" if default else "empty"
        lines.append(f"| `{declared.kafka_name}` | {shown} | {_allowed(declared)} | {declared.doc} |")
    return "\n".join(lines) + "\n"


def _row(declared: Setting) -> str:
    flag = f"`--{declared.name.replace('_', '-')}`"
    names = " and ".join(f"`{name}`" for name in dict.fromkeys((declared.kafka_name, declared.broker_name)))
    default = declared.text(declared.default)
    return f"| {flag} | {names} | {f'`{default}`' if default else 'empty'} | {_allowed(declared)} | {declared.doc} |"


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
