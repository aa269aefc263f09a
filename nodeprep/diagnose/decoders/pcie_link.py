"""Links that went away, trained anew, or are narrower than they could be."""

from __future__ import annotations

import re

from nodeprep.diagnose.decoder import Decoder
from nodeprep.diagnose.decoders._each import each
from nodeprep.diagnose.device import ADDRESS, address
from nodeprep.diagnose.event import Event
from nodeprep.diagnose.line import Line

_DPC = re.compile(
    rf"(?P<device>{ADDRESS})(?::pcie\d{{1,18}})?: DPC:? ?(?:containment event, "
    rf"status:(?P<status>0x[0-9a-fA-F]+)|"
    r"unmasked uncorrectable error detected|(?P<rp>RP PIO)|(?P<recovered>.*recover\w* success\w*)|"
    r"ERR_(?:FATAL|NONFATAL) detected)"
)
_HOTPLUG = re.compile(
    rf"(?P<device>{ADDRESS})(?::pcie\d{{1,18}})?: (?:pciehp: )?(?:"
    r"[Ss]lot\((?P<slot>[^)]{1,40})\): (?P<what>Link Down(?!/Up ignored)|Card not present|"
    r"Link Down/Up ignored)|"
    # Source: Linux before 4.17, drivers/pci/hotplug/pciehp_ctrl.c.
    r"(?P<what2>Card not present) on Slot\((?P<slot2>[^)]{1,40})\))"
)
_RETRAIN = re.compile(
    rf"(?P<device>{ADDRESS}): (?P<what>broken device, retraining|retraining failed|removing "
    rf"2\.5GT/s downstream)"
)
# Source: Linux, drivers/net/ethernet/mellanox/mlx5/core/events.c, mlx5_pcie_event. That the slot does not
# advertise its power is said of most slots and means nothing.
_SLOT_POWER = re.compile(
    rf"(?P<device>{ADDRESS}): .{{0,80}}Detected insufficient power on the PCIe slot"
    r"(?: \((?P<watts>\d{1,4})W\))?"
)
_BANDWIDTH = re.compile(
    rf"(?P<device>{ADDRESS}): (?P<have>\d{{1,9}}(?:\.\d{{1,9}})?) Gb/s available PCIe bandwidth, limited by "
    rf"(?P<speed>\d{{1,9}}(?:\.\d{{1,9}})?) ?GT/s "
    rf"PCIe x(?P<lanes>\d{{1,18}}) link at (?P<limiter>{ADDRESS}) \(capable of "
    rf"(?P<could>\d{{1,9}}(?:\.\d{{1,9}})?) Gb/s with "
    r"(?P<could_speed>\d{1,9}(?:\.\d{1,9})?) ?GT/s PCIe x(?P<could_lanes>\d{1,18})"
)
_DEVICE_ID = re.compile(
    rf"pci (?P<device>{ADDRESS}): \[(?P<vendor>[0-9a-fA-F]{{4}}):(?P<id>[0-9a-fA-F]{{4}})\] type"
)

# The driver's name at an address is the proof that a GPU is there, when enumeration is not in the log.
_DRIVER = re.compile(rf"(?:^|\s)nvidia (?P<device>{ADDRESS}): ")

_BRIDGE = re.compile(
    rf"(?P<device>{ADDRESS}): (?:\[[0-9a-fA-F:]+\] .*)?PCI bridge to \[bus "
    rf"(?P<first>[0-9a-fA-F]{{2}})(?:-(?P<last>[0-9a-fA-F]{{2}}))?\]"
)


def _parse(line: Line) -> Event | None:  # noqa: PLR0911  # one return a message
    text = line.text
    if match := _BANDWIDTH.search(text):
        data = {
            "have_gbit_s": float(match["have"]),
            "could_gbit_s": float(match["could"]),
            "speed_gt_s": float(match["speed"]),
            "lanes": int(match["lanes"]),
            "could_speed_gt_s": float(match["could_speed"]),
            "could_lanes": int(match["could_lanes"]),
            "limiter": address(match["limiter"]),
        }
        return Event(kind="link.bandwidth_limited", lines=(line,), device=address(match["device"]), data=data)
    if match := _DPC.search(text):
        kind = "dpc.recovered" if match["recovered"] else "dpc.containment"
        return Event(kind=kind, lines=(line,), device=address(match["device"]))
    if match := _HOTPLUG.search(text):
        kind = {
            "Link Down": "pciehp.link_down",
            "Card not present": "pciehp.card_not_present",
            "Link Down/Up ignored": "pciehp.link_flap_ignored",
        }[match["what"] or match["what2"]]
        data = {"slot": match["slot"] or match["slot2"]}
        return Event(kind=kind, lines=(line,), device=address(match["device"]), data=data)
    if match := _SLOT_POWER.search(text):
        data = {"watts": match["watts"] or ""}
        return Event(kind="pcie.slot_power_low", lines=(line,), device=address(match["device"]), data=data)
    if match := _RETRAIN.search(text):
        kind = {"b": "link.retrained_at_gen1", "r": "link.retrain_failed"}[match["what"][0]]
        if match["what"].startswith("removing"):
            kind = "link.restriction_removed"
        return Event(kind=kind, lines=(line,), device=address(match["device"]))
    if match := _BRIDGE.search(text):
        first = int(match["first"], 16)
        data = {"first_bus": first, "last_bus": int(match["last"], 16) if match["last"] else first}
        return Event(kind="pci.bridge", lines=(line,), device=address(match["device"]), data=data)
    if (match := _DEVICE_ID.search(text)) and match["vendor"].lower() == "10de":
        data = {"vendor": "10de", "id": match["id"].lower()}
        return Event(kind="pci.device", lines=(line,), device=address(match["device"]), data=data)
    if match := _DRIVER.search(text):
        return Event(kind="pci.bound", lines=(line,), device=address(match["device"]))
    return None


DECODER = Decoder(
    id="pcie_link",
    needles=(
        b"DPC",
        b"Slot(",
        b"slot(",
        b"insufficient power on",
        b"retraining",
        b"2.5GT/s downstream",
        b"available PCIe bandwidth",
        b": [10de:",
        b"nvidia 0",
        b"PCI bridge to [bus",
    ),
    decode=each(
        (
            "DPC",
            "Slot(",
            "slot(",
            "insufficient power on",
            "retraining",
            "2.5GT/s downstream",
            "available PCIe bandwidth",
            ": [10de:",
            "nvidia 0",
            "PCI bridge to [bus",
        ),
        _parse,
    ),
)
