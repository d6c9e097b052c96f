"""The pages say what the code does: generated ones are fresh, commands exist, links lead somewhere."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    specification = importlib.util.spec_from_file_location("generate_docs", ROOT / "tools" / "generate_docs.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_generated_pages_are_fresh_from_the_code(generator):
    stale = [
        str(path.relative_to(ROOT))
        for path, text in generator.pages().items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    assert not stale, f"run `make docs` and commit what it writes: {stale}"


def test_every_make_command_in_the_pages_exists(every_file):
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    missing = [
        f"{file.name}: make {target}"
        for file in every_file
        if file.name.endswith(".md")
        for target in re.findall(r"(?:`|^|\$ |&& )make ([a-z]+)", file.text, re.MULTILINE)
        if target not in targets
    ]
    assert not missing, f"the Makefile has no such target: {missing}"


def test_every_link_between_pages_leads_somewhere(every_file):
    broken = [
        f"{file.name} -> {target}"
        for file in every_file
        if file.name.endswith(".md")
        for target in re.findall(r"\]\((?!\w+://|#|mailto:)([^)#\s]+)", file.text)
        if not (ROOT / file.name).parent.joinpath(target).exists()
    ]
    assert not broken, f"there is nothing at the other end: {broken}"
