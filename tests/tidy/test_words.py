"""What is written here is for readers of this repository: no leftovers, no private places, no empty names."""

from __future__ import annotations

import ast
import re
from pathlib import Path

THIS_FILE = "tests/tidy/test_words.py"
EMPTY_NAMES = ("manager", "helper", "util", "utils", "impl", "misc", "common")
#: Names that are known by their addresses, and places that are nowhere or here.
KNOWN = (
    r"www\.apache\.org/licenses|www\.w3\.org/2000/svg|maven\.apache\.org/POM|semver\.org|127\.0\.0\.1|localhost|"
    r"\w+\.example\b|\{"
)
#: Pattern, and what to do about it.
BANNED = {
    r"\b(TODO|FIXME|XXX)\b": "do it, or write it down where work is planned",
    r"(?<![\w&/#])#\d{1,5}\b|\bissue \d+": "say what was wrong: a number means nothing to a reader",
    r"(?<![\w./-])/(root|home|Users)/": "a path of one machine is of no use on another",
    r"--(extra-)?index-url": "packages come from wherever the reader has set up",
    rf"https?://(?!{KNOWN})": "name the thing, not the address it was found at",
}


def test_no_leftovers_or_private_places_in_any_file(every_file):
    found = [
        f"{file.name}:{number} {match.group()!r}: {advice}"
        for file in every_file
        if file.name != THIS_FILE
        for pattern, advice in BANNED.items()
        for number, line in enumerate(file.lines, 1)
        if (match := re.search(pattern, line))
    ]
    assert not found, "\n".join(found)


def test_files_are_named_for_what_is_in_them(python_files):
    empty = [file.name for file in python_files if set(Path(file.name).stem.split("_")) & set(EMPTY_NAMES)]
    assert not empty, f"these names fit any file: {empty}"


def test_classes_are_named_for_what_they_are(source_files):
    empty = [
        f"{file.name}:{node.lineno} {node.name}"
        for file in source_files
        for node in ast.walk(file.tree)
        if isinstance(node, ast.ClassDef) and node.name.lower().endswith(EMPTY_NAMES)
    ]
    assert not empty, f"these names fit any class: {empty}"


def test_every_module_begins_by_saying_what_it_is(source_files):
    silent = [file.name for file in source_files if len(file.lines) > 0 and ast.get_docstring(file.tree) is None]
    assert not silent, f"begin with the theory in plain sentences: {silent}"


def test_every_room_has_a_sign_on_its_door(source_files):
    silent = [
        file.name
        for file in source_files
        if Path(file.name).match("src/zurau/*/__init__.py") and ast.get_docstring(file.tree) is None
    ]
    assert not silent, f"say what the room is for, its nouns, its laws, and what it must never do: {silent}"


def test_tests_are_named_as_sentences(test_files):
    mumbling = [
        f"{file.name}:{node.lineno} {node.name}"
        for file in test_files
        for node in ast.walk(file.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
        if len(node.name.split("_")) < 5
    ]
    assert not mumbling, f"say in four words or more what is true: {mumbling}"
