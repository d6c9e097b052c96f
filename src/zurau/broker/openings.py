"""Partitions that are new here are opened in turns: a topic may have thousands, and others are served meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from msgspec.structs import replace

from zurau.ids import TopicId
from zurau.machines.controller.image import TopicImage
from zurau.partition.partition import Partition
from zurau.pending import Pending, all_of, done, start
from zurau.ports import World

#: Partitions of a new topic: each takes some files and a fraction of a millisecond.
OPENED_AT_ONCE = 4
#: How long whoever makes a topic waits for its partitions.
OPENED_WITHIN_MS = 3000


class Openings:
    def __init__(
        self,
        world: World,
        present: Callable[[TopicId], TopicImage | None],
        open_some: Callable[[TopicImage], list[Partition]],
    ) -> None:
        """`present`: a topic as it is now. `open_some`: opens those partitions of a topic that are placed here."""
        self._clock = world.clock
        self._turns = world.turns
        self._present = present
        self._open_some = open_some
        #: Topics with partitions that are still being opened.
        self._under_way: dict[TopicId, Pending[None]] = {}

    def __contains__(self, topic_id: TopicId) -> bool:
        return topic_id in self._under_way

    def opened(self, topic_id: TopicId) -> Pending[None]:
        """Done when the partitions of a new topic can be used; or when that takes so long, on a disk without room for a
        vote say, that whoever made the topic is told that it is there, and its clients are told to try again."""
        opening = self._under_way.get(topic_id)
        if opening is None:
            return done(None)
        waited: Pending[None] = Pending()
        timer = self._clock.call_later(OPENED_WITHIN_MS, partial(waited.resolve, None))
        waited.then(lambda _: timer.cancel())
        opening.then(lambda _: waited.resolve(None))
        return waited

    def begin(self, topic: TopicImage) -> None:
        opening = start(self._open_in_turns(topic))
        if not opening.is_done:
            before = self._under_way.get(topic.topic_id) or done(None)
            self._under_way[topic.topic_id] = opened = all_of([before, opening])
            opened.then(lambda _: self._is_opened(topic.topic_id, opened))

    def _is_opened(self, topic_id: TopicId, opened: Pending[None]) -> None:
        if self._under_way.get(topic_id) is opened:  # no more partitions were added meanwhile
            del self._under_way[topic_id]

    async def _open_in_turns(self, topic: TopicImage) -> None:
        """A small topic is open at once."""
        started: list[Pending[None]] = []
        for first in range(0, len(topic.partitions), OPENED_AT_ONCE):
            if self._turns.is_over():
                await self._turns.next()
            present = self._present(topic.topic_id)
            if present is None:
                return  # it was deleted meanwhile, or the broker has stopped
            part = replace(present, partitions=present.partitions[first : first + OPENED_AT_ONCE])
            started += [partition.established for partition in self._open_some(part) if partition.is_only_voter]
        await all_of(started)
