"""Named faults of a simulated machine, each with what a correct tool must conclude from it.

Every fault is placed on one GPU, or on the path to it. A fault of the whole machine takes the GPU
only as its place in a list.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

from nodeprep.errors import UsageError
from nodeprep.sim import hardware, kernel_lines
from nodeprep.sim.conclusion import Cause, Conclusion
from nodeprep.sim.config_bytes import config_bytes
from nodeprep.sim.description import OSC_NOT_REQUESTED, DriverDescription
from nodeprep.sim.kernel_lines import CorrectableBit
from nodeprep.sim.machine import Machine
from nodeprep.sim.root import aer_correctable_text, device_folder

NVML_GPU_IS_LOST = 15
HW_THERMAL_SLOWDOWN = 0x40


@dataclass(frozen=True, slots=True)
class Diagnosed:
    """A machine with a fault in it, and what must be concluded about it."""

    machine: Machine
    conclusion: Conclusion


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A fault by name.

    Attributes:
        id: Name on command lines and in stories.
        title: What is wrong, in the words of somebody who stands at the rack.
        put: Puts it on a machine, at the GPU of the given index.
    """

    id: str
    title: str
    put: Callable[[Machine, int], Diagnosed]


FAULTS: dict[str, Fault] = {}


def fault(id: str) -> Fault:  # noqa: A002 - the name it has everywhere
    """The fault of that name.

    Raises:
        UsageError: There is none.
    """
    if id not in FAULTS:
        raise UsageError(f"no simulated fault {id!r}", hint=f"there are {', '.join(sorted(FAULTS))}")
    return FAULTS[id]


def _named(
    title: str,
) -> Callable[[Callable[[Machine, int], Diagnosed]], Callable[[Machine, int], Diagnosed]]:
    def register(put: Callable[[Machine, int], Diagnosed]) -> Callable[[Machine, int], Diagnosed]:
        FAULTS[put.__name__] = Fault(id=put.__name__, title=title, put=put)
        return put

    return register


def _rejected(machine: Machine, *causes: Cause, gaps: tuple[str, ...] = ()) -> Diagnosed:
    return Diagnosed(machine, Conclusion(verdict="rejected", causes=causes, gaps=gaps))


def _inconclusive(machine: Machine, *causes: Cause, gaps: tuple[str, ...] = ()) -> Diagnosed:
    return Diagnosed(machine, Conclusion(verdict="inconclusive", causes=causes, gaps=gaps))


def _fail(check: str, subject: str, *says: str, required: bool = True) -> Cause:
    return Cause(status="FAIL", check=check, subject=subject, says=says, required=required)


def _error(check: str, subject: str, *says: str, required: bool = True) -> Cause:
    return Cause(status="ERROR", check=check, subject=subject, says=says, required=required)


# ---- presence ---------------------------------------------------------------------------------------


@_named("a GPU on the PCI bus that NVML does not list")
def gpu_missing_in_nvml(machine: Machine, index: int) -> Diagnosed:
    """The driver gave up on the GPU at boot, and said so in the kernel log only."""
    address = machine.gpu_address(index)
    lines = (
        (3, f"NVRM: GPU {address}: RmInitAdapter failed! (0x62:0x65:2027)"),
        (3, f"NVRM: GPU {address}: rm_init_adapter failed, device minor number {index}"),
    )
    description = machine.description
    broken = dataclasses.replace(description, messages=(*description.messages, *lines))
    machine = dataclasses.replace(machine, description=broken).with_gpu_fault(index, hardware.missing())
    return _rejected(machine, _fail("gpu_presence", address, "NVML"))


@_named("an NVML that hangs")
def nvml_hang(machine: Machine, index: int) -> Diagnosed:
    """The firmware of one GPU stopped answering: nothing is known, so nothing may be concluded."""
    hung = machine.with_gpu_fault(index, hardware.hang("nvmlDeviceGetPowerUsage"))
    return _inconclusive(
        hung,
        _error("gpu_presence", "*", "hung"),
        _error("*", "*", "hung", required=False),
        gaps=("hung", "not observed after"),
    )


@_named("no NVIDIA driver")
def no_driver(machine: Machine, index: int) -> Diagnosed:  # noqa: ARG001 - of the whole machine
    """Freshly racked: the cards are there, the driver is not."""
    nothing = DriverDescription(version=None, disk_version=None, persistenced=None)
    bare = dataclasses.replace(machine.description, driver=nothing).with_devices(
        lambda device: device.vendor_id == "10de", driver=""
    )
    machine = dataclasses.replace(machine, description=bare, gpus=None)
    return _inconclusive(
        machine,
        _error("gpu_presence", "*", "library"),
        _error("driver_match", "node", "no NVIDIA"),
        _error("*", "*", "library", required=False),
        gaps=("library", "not observed after"),
    )


@_named("a GPU that falls off the bus under load")
def xid79_under_load(machine: Machine, index: int) -> Diagnosed:
    """Xid 79 in the kernel log, all ones from its configuration space, lost for the driver."""
    address = machine.gpu_address(index)
    gpus = machine.gpus or ()
    off_bus = machine.description.with_device(address, gone=True)
    folder = device_folder(machine.description, address)
    lost = machine.with_gpu_fault(
        index, hardware.call_error("nvmlDeviceGetHandleByIndex_v2", NVML_GPU_IS_LOST)
    )
    files: dict[str, str | bytes] = {
        f"{folder}/config": config_bytes(off_bus.devices[address]),
        f"{folder}/current_link_speed": "Unknown\n",
        f"{folder}/current_link_width": "63\n",
    }
    lines = kernel_lines.fallen_off_the_bus(address, gpus[index].uuid, gpus[index].serial)
    machine = dataclasses.replace(machine.with_on_load(files, *lines), gpus_on_load=lost.gpus)
    return _rejected(
        machine,
        _fail("no_xid", address, "79"),
        _fail("gpu_survived_load", address, "fell off"),
        _error("*", address, required=False),
        gaps=("changed during the run",),
    )


# ---- PCIe -------------------------------------------------------------------------------------------


@_named("a link that trains down to x8 under load")
def link_x8_under_load(machine: Machine, index: int) -> Diagnosed:
    """Half the lanes go when the card draws power; a look at the idle machine shows all sixteen."""
    address = machine.gpu_address(index)
    machine = machine.with_gpu_fault(index, hardware.trained_down(width_lanes=8))
    return _rejected(
        machine,
        _fail("pcie_link_width_load", address, "x8"),
        # Half the lanes carry half the traffic.
        _fail("copy_bandwidth", address, required=False),
    )


_BURST: tuple[tuple[CorrectableBit, int], ...] = (
    (kernel_lines.RX_ERR, 31),
    (kernel_lines.BAD_TLP, 112),
    (kernel_lines.BAD_DLLP, 6),
)
_BURST_TOTAL = sum(count for _, count in _BURST)
# The kernel reads a burst one report at a time and finds several errors behind each ("Multiple").
_BURST_REPORTS = (kernel_lines.RX_ERR, *([kernel_lines.BAD_TLP] * 4), kernel_lines.BAD_DLLP)


@_named("a burst of corrected PCIe errors above a GPU under load")
def aer_burst(machine: Machine, index: int) -> Diagnosed:
    """Signal integrity of one link: seen by the port above the GPU, invisible to the GPU itself."""
    hops = machine.description.gpus[index].hops
    root, port = hops[0], hops[-2]
    counts = {error.name: count for error, count in _BURST}
    files: dict[str, str | bytes] = {
        f"{device_folder(machine.description, port.address)}/aer_dev_correctable": aer_correctable_text(
            counts
        ),
        f"{device_folder(machine.description, root.address)}/aer_rootport_total_err_cor": f"{_BURST_TOTAL}\n",
    }
    lines = [
        line
        for error in _BURST_REPORTS
        for line in kernel_lines.aer_correctable(
            root_port=root.address,
            reporter=port.address,
            reporter_id=f"{port.vendor_id}:{port.device_id}",
            driver=port.driver,
            error=error,
            multiple=True,
        )
    ]
    return _rejected(
        machine.with_on_load(files, *lines),
        _fail("aer_quiet_load", port.address, "BadTLP"),
        # The same errors, counted where their messages arrive.
        _fail("aer_quiet_load", root.address, "received as root port"),
    )


@_named("ASPM L1 left on by firmware above a GPU")
def aspm_l1_on(machine: Machine, index: int) -> Diagnosed:
    """pcie_aspm=off on the command line leaves a link as firmware set it up."""
    hops = machine.description.gpus[index].hops
    on = machine.description
    for hop in hops[-2:]:
        on = on.with_device(hop.address, aspm_enabled=("L1",))
    machine = dataclasses.replace(machine, description=on)
    return _rejected(machine, _fail("aspm_off", hops[-1].address, "L1"))


@_named("error reporting that nobody owns")
def aer_not_granted(machine: Machine, index: int) -> Diagnosed:  # noqa: ARG001 - of the whole machine
    """pcie_aspm=off without pcie_ports=native: the counters read zero for ever."""
    blind = (
        dataclasses.replace(machine.description, osc_lines=OSC_NOT_REQUESTED)
        .with_cmdline(remove=("pcie_ports=native",))
        .with_devices(reporting=(), root_reporting=())
    )
    return _rejected(
        dataclasses.replace(machine, description=blind),
        _error("aer_owned", "0000:*", "blind"),
        _fail("kernel_args", "node", "pcie_ports=native"),
        _error("aer_quiet_load", "0000:*", "unknown, not zero"),
    )


@_named("PCIe errors kept by firmware")
def firmware_first(machine: Machine, index: int) -> Diagnosed:  # noqa: ARG001 - of the whole machine
    """APEI HEST hands PCIe errors to firmware: the kernel's zeros say nothing, the BMC would know."""
    kept = dataclasses.replace(machine.description, firmware_first=True)
    return _inconclusive(
        dataclasses.replace(machine, description=kept),
        _error("aer_owned", "0000:*", "firmware"),
        _error("aer_quiet_load", "0000:*", "firmware"),
    )


@_named("a link that repeats too many packets under load")
def replays_under_load(machine: Machine, index: int) -> Diagnosed:
    """Replays far above what the bit error rate of a good link allows."""
    address = machine.gpu_address(index)
    machine = machine.with_gpu_fault(index, hardware.rate("pcie_errors.replays", 400.0))
    return _rejected(machine, _fail("pcie_replay_rate", address, "packets"))


# ---- power and heat ---------------------------------------------------------------------------------


@_named("a power cap set by the BMC")
def power_capped(machine: Machine, index: int) -> Diagnosed:
    """The board obeys 500 W whatever the host asks for."""
    address = machine.gpu_address(index)
    machine = machine.with_gpu_fault(index, hardware.capped(500))
    return _rejected(
        machine,
        _fail("power_limit", address, "500"),
        # A limit that one board does not obey is no success: apply took it back on all of them, and it was
        # not made to come back at boot either.
        _fail("power_limit", "*", "wanted", required=False),
        _fail("power_boot", "node", required=False),
        _fail("probe_performance", address, required=False),
    )


@_named("a GPU that its hardware slows down for heat")
def throttle_under_load(machine: Machine, index: int) -> Diagnosed:
    """HW thermal slowdown under load, which costs speed as well."""
    address = machine.gpu_address(index)
    machine = machine.with_gpu_fault(index, hardware.throttled(HW_THERMAL_SLOWDOWN))
    return _rejected(
        machine,
        _fail("clock_reasons_load", address, "0x40"),
        # A clock that is held down reaches no peak either.
        _fail("transients", address, "wanted at some period"),
        _fail("probe_performance", address, required=False),
        _fail("probe_power", address, required=False),
        _fail("gpu_spread", address, required=False),
    )


@_named("a GPU that runs hot")
def hot_under_load(machine: Machine, index: int) -> Diagnosed:
    """Cooling that leaves no margin to the slowdown temperature."""
    address = machine.gpu_address(index)
    hot = hardware.values({"temperature.idle_c": 80, "temperature.load_c": 95})
    machine = machine.with_gpu_fault(index, hot)
    return _rejected(machine, _fail("temperature_margin_load", address))


# ---- memory and arithmetic --------------------------------------------------------------------------


@_named("a bit that comes out wrong during the probe")
def flipped_bit(machine: Machine, index: int) -> Diagnosed:
    """Silent data corruption: no counter moves, only the sums differ."""
    address = machine.gpu_address(index)
    machine = machine.with_gpu_fault(index, hardware.flip(block=7, bit=0, iteration=2))
    return _rejected(machine, _fail("probe_bitwise", address, "block 7"))


@_named("a row remap that waits for a reset")
def ecc_pending_remap(machine: Machine, index: int) -> Diagnosed:
    """A row with uncorrectable errors was marked; it is in use until the GPU is reset."""
    address = machine.gpu_address(index)
    machine = machine.with_gpu_fault(index, hardware.remapped(pending=True))
    return _rejected(machine, _fail("row_remap", address, "pending"))


@_named("uncorrected memory errors since the driver was loaded")
def uncorrected_ecc(machine: Machine, index: int) -> Diagnosed:
    """Data was lost on this GPU since boot."""
    address = machine.gpu_address(index)
    machine = machine.with_gpu_fault(index, hardware.uncorrected_ecc(2))
    return _rejected(machine, _fail("ecc_uncorrected", address, "2"))


@_named("a GPU whose driver asks for a reset")
def reset_wanted(machine: Machine, index: int) -> Diagnosed:
    """Recovery action 1 of NVML field 230, with every counter at zero."""
    address = machine.gpu_address(index)
    machine = machine.with_gpu_fault(index, hardware.recovery_action(1))
    return _rejected(machine, _fail("recovery_action", address, "GPU reset"))


# ---- driver and fabric ------------------------------------------------------------------------------


@_named("a driver that was upgraded without a reboot")
def driver_upgraded(machine: Machine, index: int) -> Diagnosed:  # noqa: ARG001 - of the whole machine
    """The module on disk is newer than the one that runs."""
    driver = dataclasses.replace(machine.description.driver, disk_version="580.200.01")
    machine = dataclasses.replace(
        machine, description=dataclasses.replace(machine.description, driver=driver)
    )
    return _rejected(machine, _fail("driver_match", "node", "580.200.01"))


@_named("a GPU that did not join the NVLink fabric")
def fabric_incomplete(machine: Machine, index: int) -> Diagnosed:
    """Registration with the fabric manager never completed."""
    address = machine.gpu_address(index)
    in_progress = {"state": 2, "status": 0, "health_mask": 0, "health_summary": 0}
    machine = machine.with_gpu_fault(index, hardware.values({"fabric": in_progress}))
    return _rejected(machine, _fail("fabric", address))


# ---- GPUs together ----------------------------------------------------------------------------------


@_named("a GPU with one NVLink down")
def nvlink_lost(machine: Machine, index: int) -> Diagnosed:
    """Seventeen of eighteen links: all works, and every copy to and from that GPU is slower."""
    address = machine.gpu_address(index)
    machine = machine.with_gpu_fault(index, hardware.values({"nvlink.inactive": [11]}))
    return _rejected(
        machine,
        _fail("nvlinks", address, "down: 11"),
        # Whether its pairs stand out depends on how many others there are.
        _fail("p2p_bandwidth", "*", address, required=False),
    )


@_named("a slow way from one GPU to another")
def slow_pair(machine: Machine, index: int) -> Diagnosed:
    """One direction between two GPUs, a third of the rate; every link is up and counts nothing."""
    address, peer = machine.gpu_address(index), _next_gpu(machine, index)
    machine = machine.with_gpu_fault(index, hardware.slow_peer(peer, 0.35))
    return _rejected(machine, _fail("p2p_bandwidth", address, f"to {peer}"))


@_named("copies between two GPUs that arrive changed")
def corrupt_pair(machine: Machine, index: int) -> Diagnosed:
    """Silent corruption on the way to one other GPU."""
    address, peer = machine.gpu_address(index), _next_gpu(machine, index)
    machine = machine.with_gpu_fault(index, hardware.corrupt_peer(peer))
    return _rejected(machine, _fail("p2p_content", address, f"changed at {peer}"))


@_named("a GPU that does not come to the all-reduce")
def rank_hangs(machine: Machine, index: int) -> Diagnosed:
    """It computes and copies like the others, and all of them wait for it for ever."""
    address = machine.gpu_address(index)
    machine = machine.with_gpu_fault(index, hardware.hanging_peer())
    return _rejected(machine, _fail("all_reduce", address, f"(GPU {address}) did not arrive"))


def _next_gpu(machine: Machine, index: int) -> str:
    return machine.gpu_address((index + 1) % len(machine.description.gpus))
