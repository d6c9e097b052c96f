"""Transcripts of consumer groups: what members say, and what they hear.

A story is a text file. `#` begins a remark; a line that begins with `>` happens; the lines under it, set in, are what
everybody heard because of it. To write all stories anew from what happens now, and then read the difference:

    ZURAU_REWRITE_STORIES=1 pytest tests/stories

| a line                                        | means                                                        |
|-----------------------------------------------|--------------------------------------------------------------|
| `> ann joins [key=value ...]`                 | keys: `instance`, `subscription`, `version` of the request   |
| `> ann syncs [bob=1 ann=0 ...]`               | with the shares that it computed, if it leads                |
| `> ann beats`, `> ann leaves`, `> ann forgets`| the last: its process is new and knows nothing               |
| `> ann commits 5`                             | of the topic `orders`, partition 0                           |
| `> 10 s pass`, `> the broker restarts`        |                                                              |
| `> the group is described`                    |                                                              |
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from zurau.errors import Refused
from zurau.ids import TopicPartition
from zurau.machines.groups.commands import (
    CommitOffsets,
    DescribeGroup,
    GroupCommand,
    GroupDescription,
    Heartbeat,
    Joined,
    JoinGroup,
    LeaveGroup,
    Leaver,
    Left,
    MemberIdRequired,
    NewOffset,
    OffsetsCommitted,
    Synced,
    SyncGroup,
)
from zurau.machines.groups.machine import GroupMachine
from zurau.machines.groups.members import Protocol
from zurau.machines.groups.settings import GroupSettings
from zurau.machines.machine import RequestId
from zurau.simulation.machine_stage import MachineStage

STORIES = sorted((Path(__file__).parent / "groups").glob("*.txt"))
GROUP = "readers"
KNOWN_ID_SINCE, SKIP_ASSIGNMENT_SINCE, NEWEST = 4, 9, 9


@dataclass
class Character:
    """What a member remembers."""

    member_id: str = ""
    generation: int = -1
    instance_id: str | None = None
    subscription: str = "orders"


class Stage:
    """Lets a story happen, line by line."""

    def __init__(self) -> None:
        self.machine = MachineStage(lambda: GroupMachine(GroupSettings()))
        self.characters: dict[str, Character] = {}
        self.askers: dict[RequestId, str] = {}
        self.ids = 0

    def tell(self, line: str) -> Iterator[str]:
        """What is heard because of a line."""
        match line.split():
            case [number, "s" | "ms" as unit, "pass"]:
                self.machine.advance(int(number) * (1000 if unit == "s" else 1))
            case ["the", "broker", "restarts"]:
                for request_id in self.machine.restart():
                    yield f"{self.askers.pop(request_id)} loses its connection"
            case ["the", "group", "is", "described"]:
                self.ask("the operator", DescribeGroup(GROUP))
            case [name, verb, *rest]:
                getattr(self, verb)(name, rest)
        yield from self.heard()

    def ask(self, name: str, command: GroupCommand) -> None:
        self.askers[self.machine.ask(command)] = name

    def heard(self) -> Iterator[str]:
        for request_id, reply in self.machine.answers.items():
            name = self.askers.pop(request_id)
            self.remember(self.characters.get(name), reply)
            yield f"{name}: {in_words(reply)}"
        self.machine.answers.clear()

    @staticmethod
    def remember(character: Character | None, reply: Any) -> None:
        if character is not None and isinstance(reply, MemberIdRequired | Joined):
            character.member_id = reply.member_id
            character.generation = getattr(reply, "generation", character.generation)

    # What members do

    def joins(self, name: str, rest: list[str]) -> None:
        says = dict(word.split("=") for word in rest)
        character = self.characters.setdefault(name, Character())
        character.instance_id = says.get("instance", character.instance_id)
        character.subscription = says.get("subscription", character.subscription)
        version = int(says.get("version", NEWEST))
        self.ids += 1
        command = JoinGroup(
            group_id=GROUP,
            member_id=character.member_id,
            candidate_id=f"{name}-{self.ids}",
            instance_id=character.instance_id,
            client_id=name,
            client_host="/127.0.0.1",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=30_000,
            protocol_type="told",
            protocols=(Protocol("range", character.subscription.encode()),),
            needs_known_id=version >= KNOWN_ID_SINCE,
            can_skip_assignment=version >= SKIP_ASSIGNMENT_SINCE,
        )
        self.ask(name, command)

    def syncs(self, name: str, rest: list[str]) -> None:
        me = self.characters[name]
        shares = dict(word.split("=") for word in rest)
        assignments = {self.characters[each].member_id: share.encode() for each, share in shares.items()}
        self.ask(name, SyncGroup(GROUP, me.generation, me.member_id, me.instance_id, None, None, assignments))

    def beats(self, name: str, _: list[str]) -> None:
        me = self.characters[name]
        self.ask(name, Heartbeat(GROUP, me.generation, me.member_id, me.instance_id))

    def commits(self, name: str, rest: list[str]) -> None:
        me = self.characters[name]
        offsets = {TopicPartition("orders", 0): NewOffset(int(rest[0]))}
        self.ask(name, CommitOffsets(GROUP, me.generation, me.member_id, me.instance_id, offsets))

    def leaves(self, name: str, _: list[str]) -> None:
        me = self.characters[name]
        self.ask(name, LeaveGroup(GROUP, (Leaver(me.member_id, me.instance_id),)))

    def forgets(self, name: str, _: list[str]) -> None:
        self.characters[name] = Character(instance_id=self.characters[name].instance_id)


def in_words(reply: Any) -> str:
    match reply:
        case Refused():
            return reply.code.name
        case MemberIdRequired(member_id):
            return f"join again as {member_id}"
        case Joined():
            roll = ", ".join(f"{each.member_id} ({each.metadata.decode()})" for each in reply.members)
            leads = f"leads {roll}{', with nothing to share out' if reply.skip_assignment else ''}"
            role = leads if reply.leader_id == reply.member_id else f"follows {reply.leader_id}"
            return f"generation {reply.generation}, {reply.member_id} {role}"
        case Synced():
            return f"owns {reply.assignment.decode() or 'nothing'}"
        case Left(codes):
            return ", ".join(f"left ({code.name})" for code in codes)
        case GroupDescription():
            nothing = "nothing" if reply.state == "Stable" else "?"
            owners = [f"{each.member_id} owns {each.assignment.decode() or nothing}" for each in reply.members]
            return f"{reply.state}: {', '.join(owners) or 'nobody'}"
        case OffsetsCommitted():
            return "committed"
        case _:
            return type(reply).__name__.lower()


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_a_group_behaves_as_its_story_tells(path, hold_to_story):
    hold_to_story(path, Stage())


def test_there_are_stories_to_be_told():
    assert STORIES
