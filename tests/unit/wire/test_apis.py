from __future__ import annotations

import pytest

from zurau.wire.kafka.apis import APIS

every_api = pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)


@every_api
def test_request_and_response_belong_to_the_api_they_are_listed_under(api):
    assert api.request.api_key == api.response.api_key == api.key
    assert api.request.__module__ == f"zurau.wire.kafka.messages.{api.module}"


@every_api
def test_request_and_response_become_flexible_in_the_same_version(api):
    assert api.request.flexible_since == api.response.flexible_since


def test_produce_is_advertised_from_zero_but_served_from_three():
    produce = APIS[0]
    assert produce.advertised_first == 0
    assert produce.versions == range(3, 12)


def test_an_api_is_advertised_as_it_is_served_unless_said_otherwise():
    assert APIS[1].advertised_first == APIS[1].first == 4


def test_versions_are_flexible_from_the_declared_one_on():
    fetch, offset_delete = APIS[1], APIS[47]
    assert [version for version in fetch.versions if fetch.is_flexible(version)] == [12, 13, 14, 15, 16, 17, 18]
    assert not offset_delete.is_flexible(0)


#: Releases of librdkafka before 2.11.1 look for exactly these versions to decide what a broker can do.
@pytest.mark.parametrize(
    ("key", "needed"),
    [(0, (0, 3, 7)), (1, (4, 10)), (2, (1,)), (10, (0,)), (8, (2,)), (9, (1,)), (11, (0,)), (22, (0,)), (18, (0,))],
)
def test_the_versions_that_old_clients_look_for_are_offered(key, needed):
    api = APIS[key]
    assert all(api.advertised_first <= version <= api.last for version in needed)
