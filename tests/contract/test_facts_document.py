"""What the node writes and what `nodeprep.model.facts` declares are the same document.

Node code cannot import the model, so only this test keeps the two from drifting apart.
"""

import dataclasses
import json
import types
import typing
from collections.abc import Mapping

import pytest

from nodeprep.model import codec
from nodeprep.model.facts import NodeFacts
from nodeprep.model.reading import Reading
from nodeprep.node import observe
from nodeprep.sim.hardware import SimulatedGpu, install
from nodeprep.sim.root import build_root, hgx_node

# What no node can tell: its BMC is asked from outside.
FROM_CONTROLLER = {"bios", "sensors"}


@pytest.fixture(scope="module")
def node_root(tmp_path_factory):
    node = hgx_node(
        gpu_count=2, messages=((3, "NVRM: Xid (PCI:0000:1b:00): 79, GPU has fallen off the bus."),)
    )
    root = build_root(tmp_path_factory.mktemp("facts") / "root", node)
    install(root, [SimulatedGpu(address=gpu.address) for gpu in node.gpus])
    return root


@pytest.fixture(scope="module")
def document(node_root):
    before = observe.collect(str(node_root))
    facts = observe.collect(str(node_root), since=before["log_cursor"])
    facts["kernel_log"]["events"] = before["kernel_log"]["events"]
    return facts


def differences(kind, value, path):
    """Fields that one side has and the other has not, anywhere in the document."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind is Reading or origin is Reading:
        yield from reading_differences(arguments[0], value, path)
    elif origin in (typing.Union, types.UnionType):
        if value is not None:
            yield from differences(next(each for each in arguments if each is not type(None)), value, path)
    elif dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        added = FROM_CONTROLLER if kind is NodeFacts else set()
        yield from (f"{path}: the node leaves out {name}" for name in hints.keys() - value.keys() - added)
        yield from (f"{path}: the model does not know {name}" for name in value.keys() - hints.keys())
        for name in hints.keys() & value.keys():
            yield from differences(hints[name], value[name], f"{path}/{name}")
    elif origin is tuple:
        for index, item in enumerate(value):
            yield from differences(arguments[0], item, f"{path}/{index}")
    elif origin is Mapping:
        for key, item in value.items():
            yield from differences(arguments[1], item, f"{path}/{key}")


def reading_differences(kind, value, path):
    allowed = {"state", "value"} if value["state"] == "ok" else {"state", "detail"}
    if value.keys() != allowed:
        yield f"{path}: a reading in state {value['state']} with {sorted(value)}"
    if value["state"] != "ok" and not value.get("detail"):
        yield f"{path}: {value['state']} without a word why"
    if value["state"] == "ok":
        yield from differences(kind, value["value"], path)


def test_no_field_is_missing_and_none_is_unknown(document):
    assert list(differences(NodeFacts, document, "")) == []


def test_every_part_of_the_document_was_really_compared(document):
    for reading in (document["pci"]["devices"], document["nvml"]["gpus"], document["kernel_log"]["events"]):
        assert reading["state"] == "ok"
        assert reading["value"]
    assert document["kernel_log"]["since"] is not None


def test_the_comparison_finds_both_kinds_of_drift(document):
    changed = json.loads(json.dumps(document))
    del changed["cpu"]["online"]
    changed["pci"]["devices"]["value"][0]["link"]["lanes"] = 16
    assert sorted(differences(NodeFacts, changed, "")) == [
        "/cpu: the node leaves out online",
        "/pci/devices/0/link: the model does not know lanes",
    ]


def test_it_decodes_with_every_type_right(document):
    facts = codec.decode(json.dumps(document), NodeFacts, source="node")
    assert facts.pci.devices.require("devices")[0].address == "0000:15:01.0"
    assert len(facts.nvml.gpus.require("GPUs")) == 2
    assert facts.kernel_log.events.require("events")[-1].xid == 79


def test_what_is_decoded_encodes_to_the_same_document(document):
    decoded = codec.to_builtins(codec.decode(json.dumps(document), NodeFacts, source="node"))
    assert list(differences_of_values(document, decoded, "")) == []


def differences_of_values(written, decoded, path):
    if isinstance(written, dict):
        for key, value in written.items():
            yield from differences_of_values(value, decoded[key], f"{path}/{key}")
    elif isinstance(written, list):
        if len(written) != len(decoded):
            yield f"{path}: {len(written)} items became {len(decoded)}"
        for index, (one, other) in enumerate(zip(written, decoded, strict=False)):
            yield from differences_of_values(one, other, f"{path}/{index}")
    elif written != decoded:
        yield f"{path}: {written!r} became {decoded!r}"


def test_a_machine_where_everything_fails_still_gives_a_document(tmp_path):
    facts = observe.collect(str(tmp_path))
    assert list(differences(NodeFacts, facts, "")) == []
    decoded = codec.decode(json.dumps(facts), NodeFacts, source="node")
    assert decoded.nvml.gpus.state == "error"


def test_the_real_machine_this_runs_on_gives_a_document():
    facts = observe.collect("/", nvml_deadline_s=10.0)
    assert list(differences(NodeFacts, facts, "")) == []
    assert codec.decode(json.dumps(facts), NodeFacts, source="node").simulated is False
