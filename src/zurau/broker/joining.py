"""How a directory that is in no cluster comes to be in one.

Every broker is given the same list of addresses, its own among them. It asks at all of them, again and again, who is
there. When one of them is in a cluster, it joins that one, which gives it an id. Only when all of them answer and none
is in a cluster does the first of the list form a new one; so a broker that has lost its disk never begins an empty
cluster of its own. Until then it waits, and says for whom.

Which of the addresses is its own a broker finds out by reaching itself there. One that is not in the list joins, and
never forms.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from zurau.broker.identity import ID_BYTES, Identity, new_identity, save_identity
from zurau.broker.peers.hello import NOBODY, Hello, HelloAnswer, Place
from zurau.ids import Address, BrokerId, id_text
from zurau.pending import Pending, all_of
from zurau.ports import Clock, Disk, Randomness, Timer

log = logging.getLogger("zurau.broker")

#: How often all are asked.
ROUND_MS = 300
#: How often a broker that waits says so.
SAY_AGAIN_MS = 5000
#: The id of the broker that forms a cluster, unless it is told another one.
FIRST_ID = BrokerId(1)

Ask = Callable[[Address, Hello], Pending[HelloAnswer | None]]


class Joining:
    """Asks until it knows who this broker is. `own_address`: where others find it, if that was set."""

    def __init__(
        self,
        disk: Disk,
        randomness: Randomness,
        clock: Clock,
        *,
        addresses: Sequence[Address],
        wanted_id: BrokerId | None,
        incarnation: bytes,
        own_address: Address | None,
        ask: Ask,
    ) -> None:
        self._disk = disk
        self._clock = clock
        self._randomness = randomness
        self._addresses = tuple(addresses)
        self._wanted_id = wanted_id
        self._incarnation = incarnation
        self._directory_id = randomness.bytes(ID_BYTES)
        #: As its peers reach it; what was found in the list, unless it was set.
        self.own_address = own_address
        #: The host by which others see it.
        self.seen_as = ""
        self._ask = ask
        self._answers: dict[Address, HelloAnswer | None] = dict.fromkeys(addresses)
        #: Where the brokers of the cluster are, once one has said so.
        self.places: tuple[Place, ...] = ()
        self._timer: Timer | None = None
        self._said_ms = clock.monotonic_ms()
        self._problem = ""
        self.joined: Pending[Identity] = Pending()

    def begin(self) -> None:
        """A round: all are asked, and what they say is looked at together."""
        self._timer = None
        hello = self._hello(joins=False)
        asked = [self._ask(address, hello) for address in self._addresses]
        all_of(asked).then(lambda _: self._look([each.result() for each in asked]))

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def answer(self, hello: Hello, seen_as: str) -> HelloAnswer:  # noqa: ARG002 - who asks makes no difference yet
        """To somebody who asks while this broker is in no cluster itself."""
        return HelloAnswer(self._incarnation, seen_as=seen_as)

    @property
    def waits_for(self) -> list[str]:
        """What has to happen, for people to read."""
        if self._problem:
            return [self._problem]
        silent = [address for address in self._addresses if self._answers[address] is None]
        if silent:
            return [f"an answer at {address}" for address in silent]
        return [f"the broker at {self._addresses[0]} to form the cluster"]

    def _look(self, answers: list[HelloAnswer | None]) -> None:
        if self.joined.is_done:
            return
        self._answers = dict(zip(self._addresses, answers, strict=True))
        self._problem = ""
        self._look_for_itself()
        members = {address: it for address, it in self._answers.items() if it is not None and it.cluster_id}
        clusters = {it.cluster_id for it in members.values()}
        if len(clusters) > 1:
            self._problem = f"a list that leads to one cluster, and not to several: {', '.join(sorted(clusters))}"
        elif members:
            address = next(iter(members))
            self._ask(address, self._hello(joins=True)).then(lambda asked: self._given(asked.result()))
            return
        elif all(self._answers.values()) and self._is_itself(self._addresses[0]):
            own_id = FIRST_ID if self._wanted_id is None else self._wanted_id
            self._belong_to(id_text(self._randomness.bytes(ID_BYTES)), own_id, is_founder=True)
            return
        self._wait()

    def _given(self, answer: HelloAnswer | None) -> None:
        if self.joined.is_done:
            return
        if answer is None or answer.given_id == NOBODY or not answer.cluster_id:
            self._problem = answer.problem if answer is not None else ""
            self._wait()
            return
        self.places = answer.places
        self._belong_to(answer.cluster_id, BrokerId(answer.given_id), is_founder=False)

    def _look_for_itself(self) -> None:
        for address, answer in self._answers.items():
            if answer is not None and not self._is_itself(address):
                self.seen_as = answer.seen_as or self.seen_as
            elif answer is not None and self.own_address is None:
                self.own_address = address

    def _is_itself(self, address: Address) -> bool:
        answer = self._answers[address]
        return answer is not None and answer.incarnation == self._incarnation

    def _belong_to(self, cluster_id: str, broker_id: BrokerId, *, is_founder: bool) -> None:
        identity = replace(
            new_identity(broker_id, self._randomness),
            cluster_id=cluster_id,
            directory_id=self._directory_id,
            is_founder=is_founder,
            is_clustered=True,
        )
        save_identity(self._disk, identity)
        log.info("broker %d %s cluster %s", broker_id, "forms" if is_founder else "joins", cluster_id)
        self.joined.resolve(identity)

    def _hello(self, *, joins: bool) -> Hello:
        broker = NOBODY if self._wanted_id is None else self._wanted_id
        place = None if self.own_address is None else Place(broker, *self.own_address)
        return Hello(self._incarnation, self._directory_id, broker=broker, place=place, joins=joins)

    def _wait(self) -> None:
        now_ms = self._clock.monotonic_ms()
        if now_ms >= self._said_ms + SAY_AGAIN_MS:
            self._said_ms = now_ms
            log.warning("this broker is in no cluster yet, and waits for: %s", "; ".join(self.waits_for))
        self._timer = self._clock.call_later(ROUND_MS, self.begin)
