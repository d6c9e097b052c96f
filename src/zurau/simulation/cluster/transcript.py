"""What happened, in words. Kept only when somebody is going to read it: a seed is run again for that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zurau.replica.effects import Announce, Append, CutEnd, Effect, ReadAndSend, Release, RestartLog, SaveVote, Send
from zurau.replica.events import Event, Received, TimePassed
from zurau.replica.messages import BeginEpoch, EndEpoch, Fetch, Fetched, FetchRefused, Message, Vote, VoteAnswer

if TYPE_CHECKING:
    from zurau.simulation.cluster.host import Host


class Transcript:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.now_ms = 0.0

    def note(self, line: str) -> None:
        self.lines.append(f"{self.now_ms:9.1f}  {line}")

    def told(self, host: Host, event: Event) -> None:
        match event:
            case Received(message):
                self.note(f"{host.name} hears from {message.sender}: {in_words(message)}")
            case TimePassed():
                self.note(f"{host.name} wakes")
            case _:
                self.note(f"{host.name} is told {event}")

    def did(self, host: Host, effect: Effect) -> None:
        line = effect_in_words(effect)
        if line is not None:
            self.note(f"    {host.name} {line}")


def effect_in_words(effect: Effect) -> str | None:
    match effect:
        case SaveVote(epoch, voted_for):
            return f"saves epoch {epoch}, " + (f"votes for {voted_for}" if voted_for is not None else "no vote yet")
        case Append(items):
            return f"appends {', '.join(map(str, items))}"
        case CutEnd(point):
            return f"cuts its log at {point}"
        case Send(to, message):
            return f"to {to}: {in_words(message)}"
        case ReadAndSend(to, message, from_offset, upto_offset):
            return f"to {to}: {in_words(message)}, records {from_offset} to {upto_offset}"
        case Release(high_watermark):
            return f"high watermark {high_watermark}"
        case Announce(role, epoch, leader):
            follows = f" of {leader}" if leader is not None and role == "follower" else ""
            return f"is {role}{follows} in epoch {epoch}"
        case RestartLog(point):
            return f"begins its log anew at {point.mark.start_offset}, after epoch {point.mark.epoch}"
        case _:
            return str(effect)


def in_words(message: Message) -> str:
    match message:
        case Fetch():
            return f"fetch at {message.position} (epoch {message.epoch})"
        case Fetched(diverging=diverging) if diverging is not None:
            return f"your log differs from mine after {diverging} (epoch {message.epoch})"
        case Fetched(snapshot=point) if point is not None:
            return f"my log begins at {point.mark.start_offset} (epoch {message.epoch})"
        case Fetched():
            items = ", ".join(map(str, (*message.marks, *message.batches))) or "nothing new"
            return f"{items}; high watermark {message.high_watermark} (epoch {message.epoch})"
        case FetchRefused():
            return f"I do not lead; {message.leader or 'nobody I know'} does (epoch {message.epoch})"
        case Vote():
            kind = "would you vote" if message.is_pre else "vote"
            return f"{kind} for me, I am at {message.position} (epoch {message.epoch})"
        case VoteAnswer():
            answer = "yes" if message.is_granted else "no"
            return f"{answer}{', if asked' if message.is_pre else ''} (epoch {message.epoch})"
        case BeginEpoch():
            return f"I lead (epoch {message.epoch})"
        case EndEpoch():
            return f"I resign for {', '.join(map(str, message.successors))} (epoch {message.epoch})"
