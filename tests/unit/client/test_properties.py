"""Files of settings, as Java reads them."""

from __future__ import annotations

import pytest

from zurau.client.security import parse_properties, read_properties
from zurau.errors import SettingsError


def test_lines_are_names_and_values():
    text = "# a comment\n! another\n\n a=1\nb : 2\nc 3\nd\n e.f =\tx = y \n"
    assert parse_properties(text) == {"a": "1", "b": "2", "c": "3", "d": "", "e.f": "x = y"}


def test_a_backslash_goes_on_in_the_next_line_or_takes_away_a_meaning():
    text = 'jaas=Module required \\\n    username="a" \\\n    password="b\\\\c";\nk\\=ey=v\nlast=back\\\\\nnext=1\n'
    assert parse_properties(text) == {
        "jaas": 'Module required username="a" password="b\\c";',
        "k=ey": "v",
        "last": "back\\",
        "next": "1",
    }


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(SettingsError, match=r"missing\.properties: No such file"):
        read_properties(tmp_path / "missing.properties")
