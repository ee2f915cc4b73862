"""``--no-skips``, which CI gives: a test that is skipped since something is missing is a failure, not a silence.

Without it, a laptop without a C compiler still runs what it can. Even with it, a test may be skipped for what the
operating system has not, which no installation mends; such a reason begins with :data:`OF_THE_SYSTEM`.
"""

from __future__ import annotations

from collections.abc import Generator

import pytest

OF_THE_SYSTEM = "the system "


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addoption("--no-skips", action="store_true", help="a skipped test is a failure (as in .ci/run)")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a test that is skipped."""
    report = yield
    _require(report, item)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Fail a module that is skipped as a whole."""
    report = yield
    _require(report, collector)
    return report


def _require(report: pytest.TestReport | pytest.CollectReport, node: pytest.Item | pytest.Collector) -> None:
    """Turn a skip into a failure that names what is missing; what is expected to fail is left as it is."""
    if not (node.config.getoption("no_skips") and report.skipped) or hasattr(report, "wasxfail"):
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    reason = reason.removeprefix("Skipped: ")
    if not reason.startswith(OF_THE_SYSTEM):
        report.outcome = "failed"
        report.longrepr = f"{node.nodeid}: is skipped, which --no-skips does not allow: {reason}"
