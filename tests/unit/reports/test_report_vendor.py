"""The copied chart library is what its README says it is."""

from __future__ import annotations

import hashlib
from importlib import resources

VENDOR = resources.files("nodeprep.reports") / "vendor"
UNSUMMED = {"README.md", "SHA256SUMS"}


def sums() -> dict[str, str]:
    lines = (VENDOR / "SHA256SUMS").read_text().splitlines()
    return {name: digest for digest, name in (line.split("  ") for line in lines)}


def test_every_copied_file_has_its_recorded_digest():
    for name, digest in sums().items():
        assert hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() == digest, name


def test_nothing_lies_there_without_a_digest():
    assert {file.name for file in VENDOR.iterdir()} - UNSUMMED == set(sums())


def test_the_version_in_the_readme_is_the_version_in_the_file():
    assert (VENDOR / "README.md").read_text().startswith("# uPlot 1.6.32\n")
    assert "(v1.6.32)" in (VENDOR / "uPlot.iife.min.js").read_text()[:100]


def test_the_library_reaches_for_nothing():
    code = (VENDOR / "uPlot.iife.min.js").read_text()
    for word in ("fetch(", "XMLHttpRequest", "WebSocket", "import(", "eval(", "</script"):
        assert word not in code, word
