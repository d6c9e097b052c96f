"""A setting that nobody reads is a promise that nobody keeps."""

from __future__ import annotations

import ast
from collections.abc import Iterator

#: Taken from Kafka's tools and told back to them, and why nothing depends on them.
ONLY_TOLD = {
    "file_delete_delay_ms": "files go as soon as a worker is free, and their readers finish in peace",
    "preallocate": "only false is taken",
    "log_dirs_rate": "a broker has one directory, so nothing moves between two",
    **dict.fromkeys(
        ("drain", "metadata_vote", "leader_rate", "follower_rate", "leader_replicas", "follower_replicas"),
        "looked up in the image, by the name that Kafka's tools know",
    ),
    "unclean_leader_election_enable": "only false is taken",
}


def test_every_setting_is_read_somewhere(source_files):
    read = {
        node.attr
        for file in source_files
        for node in ast.walk(file.tree)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
    }
    declared = {name for file in source_files for name in _settings(file.tree)}
    idle = sorted(declared - read - ONLY_TOLD.keys())
    assert not idle, f"do what they say, or take them out: {idle}"


def _settings(tree: ast.Module) -> Iterator[str]:
    """Fields that are declared as `name: type = setting(...)`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and isinstance(node.value, ast.Call):
            called = node.value.func
            if isinstance(called, ast.Name) and called.id == "setting":
                yield node.target.id
