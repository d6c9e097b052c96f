"""The feature levels of a cluster (KIP-584): which hold, which all brokers support, and how they are changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from zurau import __version__
from zurau.client.cluster.cluster import Cluster
from zurau.client.errors import check
from zurau.wire.kafka.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from zurau.wire.kafka.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest


class FeatureLevel(NamedTuple):
    """`lowest` and `highest` are what every broker that was asked supports."""

    name: str
    level: int
    lowest: int
    highest: int


class Features:
    """Each call is tried again while the reason it failed may pass, and then raises."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._timeout_ms = int(cluster.timeout_s * 1000)

    def describe(self) -> list[FeatureLevel]:
        """By name, as the brokers that are there say."""

        def ask() -> list[ApiVersionsResponse]:
            self._cluster.refresh(())
            message = ApiVersionsRequest(client_software_name="zurau", client_software_version=__version__)
            answers = [self._cluster.ask_broker(broker, message) for broker in sorted(self._cluster.metadata.brokers)]
            for answer in answers:
                check(answer.error_code, "asking for feature levels")
            return answers

        return _common(self._cluster.retry(ask))

    def upgrade(self, levels: Mapping[str, int]) -> None:
        """Raise features to these levels; all of them or none."""
        request = UpdateFeaturesRequest(
            timeout_ms=self._timeout_ms,
            feature_updates=[FeatureUpdateKey(feature=name, max_version_level=to) for name, to in levels.items()],
        )

        def update() -> None:
            answer = self._cluster.ask_controller(request)
            check(answer.error_code, "raising feature levels", answer.error_message)

        self._cluster.retry(update)


def _common(answers: Iterable[ApiVersionsResponse]) -> list[FeatureLevel]:
    """What all support. Where one is behind with its view of the cluster, the highest level holds."""
    lowest: dict[str, list[int]] = {}
    highest: dict[str, list[int]] = {}
    levels: dict[str, int] = {}
    for answer in answers:
        for supported in answer.supported_features:
            lowest.setdefault(supported.name, []).append(supported.min_version)
            highest.setdefault(supported.name, []).append(supported.max_version)
        for held in answer.finalized_features:
            levels[held.name] = max(levels.get(held.name, 0), held.max_version_level)
    return [FeatureLevel(name, levels.get(name, 0), max(lowest[name]), min(highest[name])) for name in sorted(lowest)]
