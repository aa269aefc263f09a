"""Declared access: missing is not malformed."""

from __future__ import annotations

from typing import Any

import pytest

from nodeprep.bmc.redfish.errors import Malformed, Missing
from nodeprep.bmc.redfish.resource import Resource, local_path, own_path

BODY = {
    "Id": "1",
    "Count": 2,
    "On": True,
    "Nothing": None,
    "I/O(VT-d)": "x",
    "Bios": {"@odata.id": "/redfish/v1/Bios"},
    "Old": {"href": "/rest/v1/bios"},
    "Bad": {"@odata.id": "http://elsewhere/x"},
    "Members": [{"@odata.id": "/a"}, {"@odata.id": "/b"}],
}
ONE = Resource("/redfish/v1/One", BODY)


def test_what_is_there() -> None:
    assert ONE.get(str, "Id") == "1"
    assert ONE.get(str, "I/O(VT-d)") == "x"
    assert ONE.get(str, "Members", 1, "@odata.id") == "/b"
    assert ONE.link("Bios") == "/redfish/v1/Bios"
    assert ONE.link("Old") == "/rest/v1/bios"
    assert ONE.members() == ("/a", "/b")


@pytest.mark.parametrize("path", [("None",), ("Nothing",), ("Bios", "x"), ("Members", 2), ("Nothing", "x")])
def test_missing(path: tuple[Any, ...]) -> None:
    assert ONE.find(str, *path) is None
    with pytest.raises(Missing) as caught:
        ONE.get(str, *path)
    assert caught.value.path == "".join(f"[{k}]" if isinstance(k, int) else f".{k}" for k in path).lstrip(".")


@pytest.mark.parametrize(
    ("kind", "path", "place"),
    [
        (int, ("Id",), "Id"),
        (int, ("On",), "On"),
        (bool, ("Count",), "Count"),
        (str, ("Id", "x"), "Id"),
        (str, ("Bios", 0), "Bios"),
        (list, ("Members", 0), "Members[0]"),
    ],
)
def test_malformed(kind: type, path: tuple[Any, ...], place: str) -> None:
    with pytest.raises(Malformed) as caught:
        ONE.find(kind, *path)
    assert (caught.value.uri, caught.value.path) == ("/redfish/v1/One", place)


def test_links_that_lead_nowhere() -> None:
    assert ONE.find_link("Nothing") is None
    with pytest.raises(Missing):
        ONE.link("None")
    for body in (
        BODY["Bad"],
        {},
        {"@odata.id": None},
        7,
        "",
        "x",
        "//elsewhere/x",
        "/a\nb",
        "/" + "a" * 5000,
    ):
        with pytest.raises(Malformed):
            Resource("/x", {"L": body}).link("L")


def test_a_collection_needs_members() -> None:
    with pytest.raises(Missing):
        Resource("/x", {}).members()
    with pytest.raises(Malformed):
        Resource("/x", {"Members": [{}]}).members()
    assert Resource("/x", {"links": {"Member": [{"href": "/a"}]}}).members() == ("/a",)


def test_paths_of_this_bmc() -> None:
    assert local_path("/redfish/v1/Bios#/Attributes/A") == "/redfish/v1/Bios"
    assert own_path("https://other.name:444/redfish/v1/Jobs/1?x=1") == "/redfish/v1/Jobs/1?x=1"
    assert [own_path(value) for value in (None, "", "x", "https://[broken", "https://h")] == [""] * 5
