"""Every back end against the boot files of a distribution that has it; nothing is run, nothing is written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nodeprep.node import boot_config
from nodeprep.node.boot_loaders import BACK_ENDS, Refusal, find
from nodeprep.node.kernel_cmdline import Edit

CASES = Path(__file__).parents[3] / "cases" / "boot_loaders"
LAYOUTS = sorted(path.name for path in CASES.iterdir())


def expected(layout: str) -> dict[str, Any]:
    return json.loads((CASES / layout / "expected.json").read_text())


USED = [name for name in LAYOUTS if "refused" not in expected(name)]
REFUSED = [name for name in LAYOUTS if "refused" in expected(name)]


def test_every_back_end_has_a_layout() -> None:
    assert {expected(name)["id"] for name in LAYOUTS} >= {back_end.id for back_end in BACK_ENDS}


@pytest.mark.parametrize("layout", USED)
def test_the_default_entry_is_read(layout: str) -> None:
    want = expected(layout)
    loader = find(str(CASES / layout))
    entry = loader.default_entry()
    assert (loader.id, entry.cmdline, entry.kernel_release) == (want["id"], want["cmdline"], want["kernel"])
    assert (CASES / layout / entry.source.lstrip("/")).is_file()
    assert not loader.armed()
    assert loader.staged() is None


@pytest.mark.parametrize("layout", USED)
def test_facts_tell_what_the_next_boot_would_be(layout: str) -> None:
    want = expected(layout)
    facts = boot_config.collect(str(CASES / layout))
    assert set(facts) == set(boot_config.FIELDS)
    assert facts["id"] == {"state": "ok", "value": want["id"]}
    assert facts["cmdline"] == {"state": "ok", "value": want["cmdline"]}
    if want["kernel"]:
        assert facts["default_kernel"] == {"state": "ok", "value": want["kernel"]}
    else:
        assert facts["default_kernel"]["state"] == "error"
    if want["one_shot"] is True:
        assert facts["one_shot"] == {"state": "ok", "value": True}
    else:
        assert facts["one_shot"]["state"] == "not_supported"
        assert want["one_shot"] in facts["one_shot"]["detail"]
    assert facts["boot_free_bytes"]["value"] > 0
    assert facts["trial"]["state"] == "not_supported"


@pytest.mark.parametrize("layout", REFUSED)
def test_what_is_refused_says_what_was_seen_and_what_to_do(layout: str) -> None:
    want = expected(layout)
    facts = boot_config.collect(str(CASES / layout))
    assert facts["id"]["state"] == ("not_supported" if want["id"] else "error")
    for field in ("id", "cmdline"):
        assert want["refused"] in facts[field]["detail"]
        assert want["hint"] in facts[field]["detail"]
    if want["id"] is None:
        with pytest.raises(Refusal, match="update-grub"):
            find(str(CASES / layout))
        return
    loader = find(str(CASES / layout))
    assert loader.id == want["id"]
    for action in (
        lambda: loader.stage_trial("quiet"),
        lambda: loader.commit(Edit(present=("quiet",))),
    ):
        with pytest.raises(Refusal) as caught:
            action()
        assert caught.value.hint


@pytest.mark.parametrize("layout", USED)
def test_nothing_is_written_in_a_simulated_root(layout: str) -> None:
    loader = find(str(CASES / layout))
    snapshot = loader.snapshot()
    for action in (
        lambda: loader.stage_trial("quiet"),
        loader.arm,
        loader.disarm,
        loader.unstage,
        lambda: loader.commit(Edit(present=("quiet",))),
        lambda: loader.restore(snapshot),
    ):
        with pytest.raises(Refusal, match="simulated root"):
            action()


def test_a_snapshot_can_be_stored() -> None:
    for layout in USED:
        snapshot = find(str(CASES / layout)).snapshot()
        assert json.loads(json.dumps(snapshot)) == snapshot


def test_the_snapshot_of_another_boot_loader_is_refused(tmp_path: Path) -> None:
    loader = find(str(CASES / "debian12"), run=lambda argv, timeout_s: "")
    with pytest.raises(Refusal, match="'grubby', this is 'grub_debian'"):
        loader.restore(find(str(CASES / "rhel9_2")).snapshot())
