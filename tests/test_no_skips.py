"""``--no-skips``: what CI does with tests that are skipped since something is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[1]
MODULES = {
    "test_without_package": "import pytest\nnowhere = pytest.importorskip('nowhere_at_all')\ndef test_it(): pass\n",
    "test_without_compiler": """
        import pytest
        pytestmark = pytest.mark.skipif(True, reason="no C compiler here")
        def test_compiled(): pass
    """,
    "test_some": """
        import pytest
        def test_sound(): pass
        def test_midway(): pytest.skip("datasets is not installed")
        def test_system(): pytest.skip("the system has no /proc")
        @pytest.mark.skipif(True, reason="the system has no /dev/full")
        def test_mark(): pass
        @pytest.mark.xfail(reason="known")
        def test_known(): assert False
    """,
}


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A few tests, of which most are skipped."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "tests"))
    pytester.makepyfile(**MODULES)
    return pytester


def test_tests_are_skipped_where_nobody_asks(suite: pytest.Pytester) -> None:
    result = suite.runpytest("-p", "no_skips")
    result.assert_outcomes(passed=1, skipped=5, xfailed=1)
    assert result.ret == pytest.ExitCode.OK


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["here", "in a worker"])
def test_in_ci_they_fail_with_what_is_missing(suite: pytest.Pytester, workers: tuple[str, ...]) -> None:
    options = ("-p", "no_skips", "--no-skips", "--continue-on-collection-errors", *workers)
    result = suite.runpytest_subprocess(*options) if workers else suite.runpytest(*options)
    result.assert_outcomes(passed=1, skipped=2, failed=1, errors=2, xfailed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    begins = "*: is skipped, which --no-skips does not allow: "
    for where, missing in (
        ("test_without_package.py", "could not import 'nowhere_at_all': No module named 'nowhere_at_all'"),
        ("test_without_compiler.py::test_compiled", "no C compiler here"),
        ("test_some.py::test_midway", "datasets is not installed"),
    ):
        result.stdout.fnmatch_lines([f"*{where}{begins[1:]}{missing}"])


def test_ci_gives_the_option_and_this_suite_knows_it(pytestconfig: pytest.Config) -> None:
    assert "PYTEST_ADDOPTS=--no-skips make test" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert pytestconfig.getoption("no_skips") in (False, True)
    names = [name for name, _ in pytestconfig.pluginmanager.list_name_plugin() if name.endswith("tests/conftest.py")]
    hooks = pytestconfig.pluginmanager.get_plugin(names[0])
    assert hasattr(hooks, "pytest_runtest_makereport")
    assert hasattr(hooks, "pytest_make_collect_report")
