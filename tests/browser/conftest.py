"""A Chromium for the tests that look at pages (skipped without one, unless one is required)."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "unit" / "reports")]

from chromium import Chromium, find  # noqa: E402 - the path is set above


@pytest.fixture(scope="session")
def browser():
    """One browser for all tests; each opens its own page in it."""
    executable = find()
    if executable is None:
        reason = "no Chromium on PATH (NODEPREP_CHROMIUM names one)"
        if os.environ.get("NODEPREP_REQUIRE_BROWSER") == "1":
            pytest.fail(f"NODEPREP_REQUIRE_BROWSER=1, but {reason}")
        pytest.skip(reason)
    with Chromium(executable) as found:
        yield found
