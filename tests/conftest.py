"""Rules for the whole suite: when a skip is a failure, what Ctrl-C does, and how long Hypothesis may look."""

from __future__ import annotations

import os
import signal
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

#: Set where everything is installed (CI): there a skip means that something has quietly stopped being tested.
NO_SKIPS = os.environ.get("ZURAU_NO_SKIPS") == "1"

settings.register_profile("quick", deadline=None)
settings.register_profile(
    "long", deadline=None, max_examples=5_000, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts what runs in its background so, and processes hand it on: tests of Ctrl-C would wait for ever.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if NO_SKIPS and report.skipped and not hasattr(report, "wasxfail"):
        _fail(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if NO_SKIPS and report.skipped:
        _fail(report)
    return report


def _fail(report: pytest.TestReport | pytest.CollectReport) -> None:
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    report.outcome = "failed"
    report.longrepr = f"ZURAU_NO_SKIPS=1, but this was skipped: {reason.removeprefix('Skipped: ')}"
