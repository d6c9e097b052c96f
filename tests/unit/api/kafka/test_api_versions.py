from __future__ import annotations

import pytest

from zurau.broker.settings import BrokerSettings
from zurau.log.settings import LogSettings
from zurau.simulation.broker import SimulatedBroker
from zurau.wire.kafka.apis import APIS
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.api_versions import ApiVersionsRequest


@pytest.fixture(scope="module")
def broker() -> SimulatedBroker:
    return SimulatedBroker(1, LogSettings(), BrokerSettings(offsets_topic_num_partitions=1))


@pytest.mark.parametrize("version", APIS[18].versions)
def test_every_version_lists_every_api(broker, version):
    request = ApiVersionsRequest(client_software_name="a", client_software_version="1")
    response = broker.tell(request, version)
    offered = {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}
    assert response.error_code == ErrorCode.NONE
    assert offered == {api.key: (api.advertised_first, api.last) for api in APIS.values()}


def test_what_is_not_served_is_claimed_at_no_level(broker):
    response = broker.tell(ApiVersionsRequest(client_software_name="a", client_software_version="1"), 4)
    offered = {feature.name: (feature.min_version, feature.max_version) for feature in response.supported_features}
    assert offered["transaction.version"] == offered["group.version"] == offered["share.version"] == (0, 0)
    held = {feature.name: feature.max_version_level for feature in response.finalized_features}
    assert held == {"metadata.version": 7, "zurau.version": 2}
    assert response.finalized_features_epoch > 0


def test_old_java_clients_hear_of_no_feature_that_may_be_at_level_zero(broker):
    response = broker.tell(ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3)
    assert [feature.name for feature in response.supported_features if feature.min_version < 1] == []


@pytest.mark.parametrize(("name", "version"), [("", "1"), ("a", ""), ("", "")])
def test_a_client_that_does_not_say_what_it_is_is_refused(broker, name, version):
    request = ApiVersionsRequest(client_software_name=name, client_software_version=version)
    assert broker.tell(request, 3).error_code == ErrorCode.INVALID_REQUEST


def test_old_clients_need_not_say_what_they_are(broker):
    assert broker.tell(ApiVersionsRequest(), 2).error_code == ErrorCode.NONE
