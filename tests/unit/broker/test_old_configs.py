"""Settings that an older release took."""

from __future__ import annotations

from zurau.log.settings import LogSettings
from zurau.machines.controller.config_rules import ConfigRules
from zurau.settings import MIB


def test_a_topic_with_a_segment_size_that_is_too_small_now_is_opened_with_the_least():
    rules = ConfigRules(LogSettings())
    assert rules.topic.laid_over(LogSettings(), {"segment.bytes": "14"}).segment_bytes == MIB
