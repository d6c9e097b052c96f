from __future__ import annotations

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'zurau[spark]'")

from pyspark_zurau import session
from zurau.errors import SettingsError


@pytest.mark.parametrize("remote", ["sc://127.0.0.1:1", "sc://127.0.0.1:1/;user_id=me", "sc://host:port"])
def test_a_connect_server_that_is_not_there_is_told_at_once(remote):
    with pytest.raises(SettingsError, match=f"no Spark Connect server at {remote}"):
        session(remote=remote)
