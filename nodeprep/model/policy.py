"""Policy: what the owner of a site wants, as written in inventory variables or a file.

Strict: codec.decode_strict reports every unknown key and wrong type at once, each with its path.
Defaults here are the product's default policy.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import date
from typing import Annotated, Literal

from msgspec import Meta

Level = Literal["quick", "standard", "extended", "soak"]
ProfileName = str
BiosSwitch = Literal["enabled", "disabled"]
PowerLimit = Annotated[str, Meta(pattern=r"^\d+(\.\d+)?\s*(%|W)$", examples=["93%", "650W"])]


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    """A kernel argument that a guard refuses and somebody answers for; the plan says who and why."""

    argument: str
    owner: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelArgs:
    """Arguments that must or must not be on the kernel command line.

    `pcie_aspm=off` makes the kernel stop asking firmware for AER (verified on a real kernel). With
    aer_ownership "auto" it therefore brings `pcie_ports=native` with it where firmware does not handle
    PCIe errors first; with "leave" the check aer_owned says what is lost.
    """

    present: tuple[str, ...] = ("pcie_aspm=off", "iommu=off")
    """Exactly once and in effect; other values of a key that may be repeated (console=) stay."""
    absent: tuple[str, ...] = ("pci=noaer",)
    replace: tuple[str, ...] = ()
    """The only value of their key."""
    override: tuple[Override, ...] = ()
    aer_ownership: Literal["auto", "leave"] = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class BiosPolicy:
    """BIOS knobs by vendor-neutral name; None leaves a knob alone.

    Its fields are the one list of knobs that a policy has (`BIOS_KNOBS`); a contract test holds them to
    those that nodeprep.bmc.bios can resolve.
    """

    pcie_link_gen: Annotated[int, Meta(ge=1, le=6)] | Literal["auto"] | None = None
    iommu: BiosSwitch | None = None
    aspm: BiosSwitch | None = None
    xhci_handoff: BiosSwitch | None = None
    above_4g: BiosSwitch | None = None
    resizable_bar: BiosSwitch | None = None
    sriov: BiosSwitch | None = None
    acs: BiosSwitch | None = None
    relaxed_ordering: BiosSwitch | None = None
    ten_bit_tags: BiosSwitch | None = None
    package_c_states: BiosSwitch | None = None
    unsupported: Literal["error", "accept"] = "error"
    """What it means when a BIOS has no such setting: nobody can say that it is as asked (error), or the
    site can live without it (accept)."""

    def asked(self) -> dict[str, str]:
        """The knobs that are not left alone, with the values they should have."""
        found = {name: getattr(self, name) for name in BIOS_KNOBS}
        return {name: str(value) for name, value in found.items() if value is not None}


BIOS_KNOBS = tuple(each.name for each in fields(BiosPolicy) if each.name != "unsupported")


@dataclass(frozen=True, slots=True, kw_only=True)
class PcieLinkPolicy:
    """PCIe generation that links must have under load; None takes the profile's.

    method: bios is for the BIOS alone, host writes the port above each GPU, auto takes the BIOS where it
    can be written.
    """

    gen: Annotated[int, Meta(ge=1, le=6)] | None = None
    width_lanes: Literal[1, 2, 4, 8, 16] | None = None
    method: Literal["auto", "bios", "host"] = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuPolicy:
    """GPU settings. The limit is in watts ("650W") or per cent of the default limit ("93%")."""

    power_limit: PowerLimit | None = None
    persistence: bool = True
    ecc: bool = True
    count: Annotated[int, Meta(ge=1, le=64)] | None = None
    """GPUs this node must have; None means as many as the PCI bus shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialPolicy:
    """How long a trial boot may take, and what happens after that.

    return_s: seconds from the reboot until the node must answer again; firmware of a large baseboard
        takes ten minutes and more.
    confirm_s: seconds after which a node that booted the trial and was not confirmed resets itself.
    power: what the BMC is told to do with a node that did not come back.
    """

    return_s: Annotated[int, Meta(ge=60, le=7200)] = 1200
    confirm_s: Annotated[int, Meta(ge=120, le=7200)] = 600
    power: Literal["cycle", "reset"] = "cycle"


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorPolicy:
    """Thresholds of the node agent."""

    pcie_stddev_gbps: Annotated[float, Meta(gt=0)] = 15.0
    aer_per_5min: Annotated[int, Meta(ge=0)] = 100
    reserved_active_ratio: Annotated[float, Meta(ge=1)] = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CertifyPolicy:
    """How hard to look, and for how long the answer holds."""

    level: Level = "standard"
    workload: str = "vit-g"
    valid_days: Annotated[int, Meta(ge=1, le=3650)] = 90


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiver:
    """A check somebody answers for, until a day. Shown in the certificate."""

    check: str
    owner: str
    until: date
    why: str
    host: str = "*"
    """Inventory name, or a shell pattern."""
    subject: str = "*"
    """PCI address the result speaks of, or a shell pattern; "node" is the node as a whole."""
    status: Literal["FAIL", "ERROR"] | None = None
    """What is waived: what was found (FAIL) or what could not be read (ERROR); None waives both."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """`nodeprep_policy`."""

    kernel_args: KernelArgs = KernelArgs()
    bios: BiosPolicy = BiosPolicy()
    pcie_link: PcieLinkPolicy = PcieLinkPolicy()
    gpu: GpuPolicy = GpuPolicy()
    trial: TrialPolicy = TrialPolicy()
    monitor: MonitorPolicy = MonitorPolicy()
    certify: CertifyPolicy = CertifyPolicy()
    waivers: tuple[Waiver, ...] = ()
    probe_python: str | None = None
    """A Python on the node that has torch; None uses the one the role probe_runtime makes."""

    def bios_wanted(self) -> dict[str, str]:
        """What a BMC is asked for: the knobs of `bios`, and the generation that `pcie_link` leaves to it."""
        wanted = self.bios.asked()
        link = self.pcie_link
        if link.gen is not None and link.method != "host" and "pcie_link_gen" not in wanted:
            wanted["pcie_link_gen"] = str(link.gen)
        return wanted
