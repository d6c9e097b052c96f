"""How settings are declared, read and refused."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from zurau.errors import SettingsError
from zurau.settings import setting, settings_of, with_values


@dataclass(frozen=True, slots=True)
class Example:
    retention_ms: int = setting(1000, "retention.ms", at_least=-1, at_most=5000, doc="How long.")
    ratio: float = setting(0.5, "ratio", doc="How much.")
    enabled: bool = setting(True, "enabled", doc="Whether.")
    policy: tuple[str, ...] = setting(("delete",), "policy", choices=("delete", "compact"), doc="What.")


def test_text_becomes_a_typed_value():
    values = {"retention.ms": "7", "ratio": "0.25", "enabled": "FALSE", "policy": "compact, delete"}

    assert with_values(Example(), values) == Example(7, 0.25, False, ("compact", "delete"))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"retention.ms": "many"}, r"retention.ms='many' is not a whole number; for example '1000'"),
        ({"retention.ms": "-2"}, r"retention.ms=-2 is too small; use -1 or more"),
        ({"retention.ms": "5001"}, r"retention.ms=5001 is too large; use 5000 or less"),
        ({"enabled": "yes"}, r"enabled='yes' is not true or false; for example 'true'"),
        ({"policy": "delete,keep"}, r"policy='keep' is unknown; use one of delete, compact"),
        ({"retention.msec": "1"}, r"there is no setting 'retention.msec'; did you mean 'retention.ms'\?"),
    ],
)
def test_a_bad_value_is_refused_with_what_would_be_right(values: dict[str, str], message: str):
    with pytest.raises(SettingsError, match=message):
        with_values(Example(), values)


def test_values_print_as_kafkas_tools_print_them():
    declared = settings_of(Example)

    assert declared["enabled"].text(True) == "true"
    assert declared["policy"].text(("compact", "delete")) == "compact,delete"


@pytest.mark.parametrize(("text", "value"), [("-7", -1), ("9999", 5000), ("77", 77)])
def test_a_number_beyond_the_bounds_can_count_as_the_nearest_within(text, value):
    assert settings_of(Example)["retention.ms"].nearest(text) == value


def test_what_is_no_number_is_near_nothing():
    with pytest.raises(SettingsError, match="not a whole number"):
        settings_of(Example)["retention.ms"].nearest("many")
