"""Nodes with two GPUs below ports, and buses whose hardware does not do what it is told."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nodeprep.node import durable, link_pin, link_pin_bus, power_unit
from nodeprep.node.link_pin_bus import (
    ACTIVE,
    LNKCAP,
    LNKCTL,
    LNKCTL2,
    LNKSTA,
    RETRAIN,
    TRAINING,
    SimulatedBus,
)
from nodeprep.node.pci import DEVICES
from nodeprep.sim.root import build_root, hgx_node

FIRST, SECOND = "0000:1b:00.0", "0000:43:00.0"
FIRST_PORT, SECOND_PORT = "0000:17:02.0", "0000:3f:02.0"
UPSTREAM, ROOT_PORT = "0000:16:00.0", "0000:15:01.0"


def node_with(path: Path, *, driver: str = "", **gpu: Any) -> str:
    """Two GPUs behind switches; keyword arguments change both, "port_" ones the ports above them."""
    port = {name[5:]: gpu.pop(name) for name in list(gpu) if name.startswith("port_")}
    node = hgx_node(gpu_count=2)
    gpus = tuple(
        replace(
            one,
            hops=(*one.hops[:-2], replace(one.hops[-2], **port), replace(one.hops[-1], driver=driver, **gpu)),
        )
        for one in node.gpus
    )
    root = str(build_root(path, replace(node, gpus=gpus)))
    durable.put(root, power_unit.NODE_PYZ, "program")
    return root


def targets(root: str) -> dict[str, tuple[int, int, int]]:
    """Port to its target, and the generation at both ends."""
    found = link_pin.show(root)
    assert not found["failed"], found["msg"]
    return {link["port"]: (link["target_gen"], link["gen"], link["gpu_gen"]) for link in found["links"]}


def config_bytes(root: str, address: str) -> bytes:
    return Path(f"{root}{DEVICES}/{address}/config").read_bytes()


def as_json(root: str, path: str) -> Any:
    return json.loads(durable.content(root, path) or "null")


class Ignoring(SimulatedBus):
    """As QEMU's ports: LnkCtl2 and Retrain Link can be written and nothing happens."""

    def write(self, address: str, register: int, value: int) -> None:
        if register not in (LNKCTL, LNKCTL2):
            super().write(address, register, value)


class Stubborn(SimulatedBus):
    """Takes the target and trains to the old speed all the same."""

    def write(self, address: str, register: int, value: int) -> None:
        super().write(address, register, value & ~RETRAIN if register == LNKCTL else value)


class Faulty(SimulatedBus):
    """One port's link does not survive its first training; the second brings it back.

    Attributes:
        port: The port.
        times: So often it goes wrong.
    """

    port = SECOND_PORT
    times = 1

    def write(self, address: str, register: int, value: int) -> None:
        broken = type(self).times > 0 and address == self.port and register == LNKCTL and value & RETRAIN
        self.mend(address, register, value)
        super().write(address, register, value)
        if broken:
            type(self).times -= 1
            self.spoil(address)

    def mend(self, address: str, register: int, value: int) -> None:
        """Called before each write."""

    def spoil(self, port: str) -> None:
        raise NotImplementedError


class Hanging(Faulty):
    """Does not get out of training."""

    def spoil(self, port: str) -> None:
        SimulatedBus.write(self, port, LNKCTL2, self.read(port).control2())
        link_pin_bus.Bus.write(self, port, LNKSTA, self.read(port).status() | TRAINING)


class Narrow(Faulty):
    """Comes back with half of its lanes; a further training brings all of them."""

    def spoil(self, port: str) -> None:
        link_pin_bus.Bus.write(self, port, LNKSTA, self.read(port).status() & ~0x03F0 | 8 << 4)

    def mend(self, address: str, register: int, value: int) -> None:
        if address == self.port and register == LNKCTL and value & RETRAIN:
            link_pin_bus.Bus.write(self, address, LNKSTA, self.read(address).status() & ~0x03F0 | 16 << 4)


class Dropping(Faulty):
    """The GPU falls off the bus."""

    gpu = SECOND
    times = 9

    def spoil(self, port: str) -> None:
        Path(f"{self.root}{DEVICES}/{self.gpu}/config").write_bytes(b"\xff" * 4096)

    def _train(self, port: str) -> None:
        if port != self.port:
            super()._train(port)


class LinkDown(Faulty):
    """A port that reports whether its link is active, and reports that it is not."""

    def spoil(self, port: str) -> None:
        link_pin_bus.Bus.write(self, port, LNKCAP + 2, 0x0010)
        link_pin_bus.Bus.write(self, port, LNKSTA, self.read(port).status() & ~ACTIVE)

    def mend(self, address: str, register: int, value: int) -> None:
        if address == self.port and register == LNKCTL and value & RETRAIN:
            link_pin_bus.Bus.write(self, address, LNKSTA, self.read(address).status() | ACTIVE)


@pytest.fixture
def hardware(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes the node's bus one of the above, with short waits."""

    def use(kind: type[SimulatedBus]) -> type[SimulatedBus]:
        class Fresh(kind):  # type: ignore[misc, valid-type]
            """Counts for itself."""

        monkeypatch.setattr(link_pin, "open_bus", Fresh)
        monkeypatch.setattr("nodeprep.node.link_pin_train.TRAINING_S", 0.05)
        monkeypatch.setattr("nodeprep.node.link_pin_train.ANSWER_S", 0.05)
        return Fresh

    return use
