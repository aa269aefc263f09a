"""Whose BMC a dump comes from, and how that vendor's BMCs behave.

Source: the field notes of the project (dumps, registries and public issues of each vendor).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

from nodeprep.sim.bmc.conduct import (
    Conduct,
    EtagConduct,
    LoginConduct,
    StagingConduct,
    TreeConduct,
)
from nodeprep.sim.bmc.dump import ROOT, Dump, plain

_ILO_TREE = TreeConduct(any_case=True, slash_redirect=True, gzip_registries=True)

CONDUCTS: Mapping[str, Conduct] = {
    conduct.vendor: conduct
    for conduct in (
        # iDRAC: a PATCH with an apply time makes a job; without one the values wait for ever.
        Conduct(
            vendor="dell",
            base="Base.1.12",
            oem="IDRAC.2.8",
            login=LoginConduct(session_limit=8),
            staging=StagingConduct(apply_time="job"),
        ),
        # iLO 5 and later: everything is accepted; POST judges, and its messages tell.
        Conduct(
            vendor="hpe",
            base="Base.1.4",
            oem="iLO.2.14",
            tree=_ILO_TREE,
            staging=StagingConduct(checks="after_post", refused_in_post=True, messages=True),
        ),
        # iLO 4: the same with a flat body.
        Conduct(
            vendor="hpe_ilo4",
            base="Base.0.10",
            oem="iLO.0.10",
            tree=_ILO_TREE,
            staging=StagingConduct(checks="after_post", refused_in_post=True),
        ),
        # HPE Cray EX: no settings resource; the Bios resource takes them and shows them after a reset.
        Conduct(
            vendor="cray_ex", etag=EtagConduct(if_match="ignored"), staging=StagingConduct(on_current=True)
        ),
        Conduct(
            vendor="supermicro",
            base="Base.v1_4_0",
            staging=StagingConduct(on_current=True, status=202, omits_empty=True),
        ),
        # XCC: advertises OnReset and refuses it; drops what a preset has grayed out.
        Conduct(
            vendor="lenovo",
            base="Base.1.11",
            staging=StagingConduct(apply_time="refused", drops="grayed"),
        ),
        Conduct(
            vendor="ami",
            base="Base.1.5",
            etag=EtagConduct(if_match="required"),
            staging=StagingConduct(status=204, omits_empty=True),
        ),
        Conduct(
            vendor="openbmc",
            base="Base.1.18",
            etag=EtagConduct(if_match="ignored", form="none"),
            staging=StagingConduct(status=204, unknown_is_value=True),
        ),
        Conduct(vendor="generic"),
    )
}
# Makers whose BMCs are AMI's, where nothing else tells.
_AMI_MAKERS = ("gigabyte", "giga computing", "asus", "asrock", "inspur", "quanta", "wiwynn", "zt systems")


def conduct_of(dump: Dump) -> Conduct:
    """How the BMC of a dump behaves without faults."""
    conduct = CONDUCTS[vendor_of(dump)]
    # Where a crawler found no settings resource, it was 404 because nothing waited.
    if conduct.vendor == "ami" and settings_of(dump, "ami") not in dump.resources:
        conduct = dataclasses.replace(
            conduct, staging=dataclasses.replace(conduct.staging, absent_when_empty=True)
        )
    if dump.shape.name == "flat" and conduct.vendor == "supermicro":
        # X11: a flat body to the Bios resource. Source: DMTF/Redfishtool#41.
        return dataclasses.replace(conduct, etag=EtagConduct(if_match="ignored"))
    return conduct


def vendor_of(dump: Dump) -> str:
    """The vendor's key in CONDUCTS, told from what the BMC says about itself."""
    said = _Said(dump)
    return next((vendor for vendor, fits in _RULES if fits(said)), "generic")


class _Said:
    """What a BMC says about its maker.

    Attributes:
        words: In lower case.
        settings: Last part of the URI of the settings resource, in lower case; empty when there is none.
    """

    def __init__(self, dump: Dump) -> None:
        root, system, manager = dump.body(ROOT), dump.body(dump.system), dump.body(dump.manager)
        oem = root.get("Oem")
        said = (
            root.get("Vendor"),
            root.get("Product"),
            system.get("Manufacturer"),
            manager.get("Manufacturer"),
            manager.get("Model"),
            *(oem if isinstance(oem, Mapping) else ()),
        )
        self.text = " ".join(str(part).lower() for part in said if part)
        self.words = frozenset(self.text.split())
        self.settings = plain(dump.settings or "").rsplit("/", 1)[-1].lower()
        self.shape = dump.shape.name

    def names(self, *makers: str) -> bool:
        """Whether any of these is part of what it says."""
        return any(maker in self.text for maker in makers)

    @property
    def hpe(self) -> bool:
        """Whether it is an HPE."""
        return bool(self.words & {"hpe", "hp", "ilo"}) or self.names("hewlett")


# In this order: the software of the BMC counts before the name on the box.
_RULES: tuple[tuple[str, Callable[[_Said], bool]], ...] = (
    ("openbmc", lambda said: said.names("openbmc")),
    ("dell", lambda said: said.names("dell", "idrac")),
    ("cray_ex", lambda said: said.shape == "objects" or (said.names("cray") and not said.settings)),
    ("ami", lambda said: "ami" in said.words or (said.settings == "sd" and not said.names("supermicro"))),
    ("hpe_ilo4", lambda said: said.hpe and said.shape == "flat"),
    ("hpe", lambda said: said.hpe),
    # The GB200 and GB300 boards of Supermicro have OpenBMC.
    ("openbmc", lambda said: said.names("supermicro", "super micro") and said.settings not in ("sd", "")),
    ("supermicro", lambda said: said.names("supermicro", "super micro")),
    ("lenovo", lambda said: said.names("lenovo") or said.settings == "pending"),
    ("ami", lambda said: said.names(*_AMI_MAKERS) and not said.settings),
    ("openbmc", lambda said: said.names("nvidia")),
)


def settings_of(dump: Dump, vendor: str) -> str | None:
    """URI of the settings resource, where the dump itself does not tell it too."""
    if dump.bios is None:
        return None
    if dump.settings:
        return dump.settings
    if vendor == "cray_ex":
        return None
    return f"{dump.bios}/SD" if vendor == "ami" else f"{dump.bios}/Settings"
