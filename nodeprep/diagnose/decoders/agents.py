"""What health agents say of GPUs: device plugin, DCGM, exporters."""

from __future__ import annotations

import re

from nodeprep.diagnose.decoder import Decoder
from nodeprep.diagnose.decoders._each import each
from nodeprep.diagnose.device import ADDRESS, address
from nodeprep.diagnose.event import Event
from nodeprep.diagnose.line import Line

_PLUGIN = re.compile(r"XidCriticalError: Xid=(?P<code>\d{1,18}) on Device=(?P<uuid>[\w-]+)")
_EVENT_TYPE = re.compile(r"\{EventType:(?P<type>\d{1,18}) EventData:(?P<data>\d{1,18})")
_NAMED = re.compile(
    rf"\bGPU XID (?P<code>\d{{1,4}})\b|\bXID (?P<code2>\d{{1,4}}) ?\([^()]{{1,80}}\) detected on (?:GPU )?"
    rf"PCI:(?P<device>{ADDRESS})|"
    # Source: aws/eks-node-monitoring-agent, monitors/nvidia: the reason of its events.
    r"\bNvidiaXID(?P<code3>\d{1,4})(?:Error|Warning)\b(?:.*?\bnode/(?P<node>[\w.-]{1,100}))?"
)
_UNHEALTHY = re.compile(r"device marked unhealthy: (?P<uuid>[\w-]+)")
_COUNTER = re.compile(
    r"^(?P<name>\w*xid_errors?\w*)\{(?P<labels>[^}]*)\} (?P<value>\d{1,15}(?:\.\d{1,9})?(?:e\+\d{1,2})?)\s*$",
    re.IGNORECASE,
)
_DCGM = re.compile(
    r"^(?P<name>DCGM_FI_DEV_\w+)\{(?P<labels>[^}]*)\} (?P<value>\d{1,15}(?:\.\d{1,9})?(?:e[+-]\d{1,2})?)\s*$"
)
_LABEL = re.compile(r'(\w+)="([^"]*)"')
_DCGM_HEALTH = re.compile(
    r"\|\s*(?:->)?\s*(?P<test>[A-Za-z][\w /]+?)\s*\|\s*Fail\b"
    r"(?: - GPUs?: (?P<gpus>\d[\d, ]{0,60}))?"
)
# Source: NVML event types, nvmlEventTypeDoubleBitEccError.
_DOUBLE_BIT = 2
# Source: NVIDIA/k8s-device-plugin#259: the code of an error that is no Xid.
_NO_XID = 999
# Source: DCGM 4.6 field names; the value that says "all well" is 0 for each.
_DCGM_KINDS = {
    "DCGM_FI_DEV_ROW_REMAP_FAILURE": "smi.remap_failure",
    "DCGM_FI_DEV_ROW_REMAP_PENDING": "smi.remap_pending",
    "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": "smi.ecc_uncorrected",
}


def _parse(line: Line) -> Event | None:  # noqa: PLR0911  # one return a message
    text = line.text
    if match := _PLUGIN.search(text):
        code = int(match["code"])
        data = {"code": code, "uuid": match["uuid"], "agent": "device plugin"}
        kind = "nvml.unknown_event" if code == _NO_XID else f"xid.{code}"
        return Event(kind=kind, lines=(line,), data=data)
    if (match := _NAMED.search(text)) and "NVRM" not in text:
        code = int(match["code"] or match["code2"] or match["code3"])
        data = {"code": code, "agent": "health agent", "node": match["node"] or ""}
        return Event(kind=f"xid.{code}", lines=(line,), device=address(match["device"] or ""), data=data)
    if match := _EVENT_TYPE.search(text):
        kind = "agent.ecc_double_bit" if int(match["type"]) == _DOUBLE_BIT else "agent.other_event"
        return Event(kind=kind, lines=(line,), data={"event_type": int(match["type"])})
    if match := _UNHEALTHY.search(text):
        return Event(kind="agent.unhealthy", lines=(line,), data={"uuid": match["uuid"]})
    if match := _DCGM.match(text):
        return _dcgm(line, match)
    if match := _COUNTER.match(text):
        labels = dict(_LABEL.findall(match["labels"]))
        number = labels.get("err_code") or labels.get("xid") or ""
        count = int(float(match["value"]))
        if number.isdecimal() and count:
            data = {"code": int(number), "node": labels.get("node", "")}
            return Event(kind="agent.xid_count", lines=(line,), data=data, count=count)
    elif "|" in text and (match := _DCGM_HEALTH.search(text)):
        gpus = re.findall(r"\d+", match["gpus"] or "")
        data = {"test": match["test"].strip(), "gpus": tuple(map(int, gpus))}
        return Event(kind="agent.diag_failed", lines=(line,), data=data)
    return None


def _dcgm(line: Line, match: re.Match[str]) -> Event | None:
    value = int(float(match["value"]))
    labels = dict(_LABEL.findall(match["labels"]))
    device = address(labels.get("pci_bus_id", ""))
    if not value:
        return None
    data = {"uuid": labels.get("UUID", ""), "value": value, "agent": "DCGM"}
    if match["name"] == "DCGM_FI_DEV_XID_ERRORS":
        return Event(kind=f"xid.{value}", lines=(line,), device=device, data={**data, "code": value})
    if kind := _DCGM_KINDS.get(match["name"]):
        return Event(kind=kind, lines=(line,), device=device, data=data)
    return None


DECODER = Decoder(
    id="agents",
    needles=(
        b"XidCritical",
        b"XID ",
        b"NvidiaXID",
        b"EventType:",
        b"marked unhealthy",
        b"xid_error",
        b"DCGM_FI_DEV_",
        b"| Fail",
    ),
    decode=each(
        (
            "XidCritical",
            "XID ",
            "NvidiaXID",
            "EventType:",
            "marked unhealthy",
            "xid_error",
            "DCGM_FI_DEV_",
            "| Fail",
            ": Fail",
        ),
        _parse,
    ),
)
