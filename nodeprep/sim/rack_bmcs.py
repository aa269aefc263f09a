"""BMCs of a simulated rack: one a node, of the different vendors in turn, served while the rack is worked on.

Most take what they are told. One has a BIOS without one of the settings that the rack's policy asks for, and
one wants a licence before it takes any: what a correct tool says of those two nodes is theirs to tell, the
nodes being healthy otherwise.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nodeprep.sim.bmc import SimulatedBmc, Tls, serving, tls_in
from nodeprep.sim.bmc_trees import MAKES, bmc_tree
from nodeprep.sim.conclusion import Cause, Conclusion
from nodeprep.sim.rack import HEAD, RackInventory, RackNode, as_yaml, rack_variables

# What the policy of a rack with BMCs asks for besides. The nodes run without an IOMMU and without ASPM, and
# their BIOS still has them on.
BIOS_POLICY: Mapping[str, str] = {"iommu": "disabled", "aspm": "disabled"}
# Simulated hosts need no minutes to start, and their BMCs' time runs as much faster.
HURRY = 10.0
_USER = "simulated"
_POST_S = 20.0
_MARK = f"{HEAD}# Only there while its BMCs are served.\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Role:
    """What the BMC of one node is.

    Attributes:
        make: Key in MAKES.
        without: Settings that its BIOS lacks.
        faults: Of the simulated BMC.
        title: What is wrong with it, in words; "" for nothing.
    """

    make: str
    without: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    title: str = ""
    conclusion: Conclusion | None = None


_NO_KNOB = Conclusion(
    verdict="inconclusive",
    causes=(Cause(status="ERROR", check="bios_settings", subject="aspm", says=("no such setting",)),),
)
_NO_LICENCE = Conclusion(
    verdict="rejected",
    causes=(Cause(status="FAIL", check="bios_settings", subject="iommu", says=("not disabled", "Enable")),),
)
_ROLES = (
    _Role(make="dell"),
    _Role(make="hpe"),
    _Role(make="lenovo"),
    _Role(make="ami"),
    _Role(make="supermicro"),
    _Role(make="nvidia"),
    _Role(
        make="nvidia",
        without=("ASPM",),
        title="the BIOS has no ASPM setting",
        conclusion=_NO_KNOB,
    ),
    _Role(
        make="supermicro",
        faults=("licence",),
        title="the BMC wants a licence for BIOS settings",
        conclusion=_NO_LICENCE,
    ),
)


@contextmanager
def serving_bmcs(rack: RackInventory) -> Iterator[RackInventory]:
    """Serves a BMC for each node while the block runs, and names them in the rack's inventory.

    The trees lie in FOLDER/bmc/NODE.json and stay there, for `nodeprep sim bmc --dump`. What the inventory
    says of the BMCs goes when they go: a BMC that is named and gone would be an error of every node.

    Yields:
        The rack with the stories of the BMCs among those of its nodes.
    """
    folder = rack.folder / "bmc"
    folder.mkdir(exist_ok=True)
    password = secrets.token_urlsafe(18)
    tls = tls_in(folder / "tls")
    bmcs, nodes = [], []
    for number, node in enumerate(rack.nodes):
        role = _role(number, node)
        tree = bmc_tree(MAKES[role.make], serial=f"SIM{number + 1:05d}", without=role.without)
        (folder / f"{node.name}.json").write_text(json.dumps(tree.resources, indent=1) + "\n")
        bmcs.append(
            SimulatedBmc(
                tree, user=_USER, password=password, faults=role.faults, clock=_hurried, post_s=_POST_S
            )
        )
        nodes.append(_told(node, role))
    written: list[Path] = []
    try:
        with serving(bmcs, tls=tls) as served:
            ports = {node.name: one.port for node, one in zip(nodes, served, strict=True)}
            written += _name_in_inventory(rack, ports, tls, password)
            yield replace(rack, nodes=tuple(nodes))
    finally:
        for path in written:
            path.unlink(missing_ok=True)


def _role(number: int, node: RackNode) -> _Role:
    """The roles in turn; a story of a BMC goes to a node that has none of its own."""
    role = _ROLES[number] if number < len(_ROLES) else _ROLES[number % len(_ROLES)]
    if number >= len(_ROLES) or node.fault:
        return replace(role, without=(), faults=(), title="", conclusion=None)
    return role


def _told(node: RackNode, role: _Role) -> RackNode:
    if role.conclusion is None:
        return node
    return replace(node, title=role.title, conclusion=role.conclusion)


def _hurried() -> float:
    return time.monotonic() * HURRY


def _name_in_inventory(
    rack: RackInventory, ports: Mapping[str, int], tls: Tls, password: str
) -> Iterator[Path]:
    secret = rack.folder / "bmc" / "password"
    yield secret
    descriptor = os.open(secret, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(password + "\n")
    variables = rack_variables()
    policy = {**variables["nodeprep_policy"], "bios": dict(BIOS_POLICY)}
    shared = rack.folder / "group_vars" / "simulated_rack.yml"
    yield shared
    shared.write_text(_MARK + as_yaml({"nodeprep_bmc_password_file": str(secret), "nodeprep_policy": policy}))
    for name, port in ports.items():
        own = rack.folder / "host_vars" / f"{name}.yml"
        yield own
        own.parent.mkdir(exist_ok=True)
        access: dict[str, Any] = {
            "protocol": "redfish",
            "address": "127.0.0.1",
            "port": port,
            "user": _USER,
            "fingerprint": tls.fingerprint,
        }
        own.write_text(_MARK + as_yaml({"nodeprep_bmc": access}))
