"""A run as a report may meet it: every kind of outcome, figures as machines give them, hostile text.

Everything is computed from the arguments; the same arguments give the same run.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

from fixture_facts import address, facts, port, uuid
from fixture_probe import gpu_run, probe, telemetry

from nodeprep.model.certificate import (
    Certificate,
    Configuration,
    GpuIdentity,
    Identity,
    ProbeSummary,
)
from nodeprep.model.facts import (
    KernelEvent,
)
from nodeprep.model.plan import Change, Plan
from nodeprep.model.policy import Waiver
from nodeprep.model.result import CheckResult, Status
from nodeprep.model.run import HostRecord, NodeView, Run, RunView

SCRIPT = "</script><script>window.pwned=1</script>"
IMAGE = '"><img src=x onerror="window.pwned=1">'
EVENT_XSS = f"NVRM: Xid (PCI:0000:17:00): 79, {SCRIPT}{IMAGE} GPU has fallen off the bus."

WAIVER = Waiver(
    check="persistence", owner="ops@example.org", until=date(2027, 1, 31), why="daemon arrives with image 14"
)


CHECKS: tuple[tuple[str, str, float | int | str, float | int | str, str, str], ...] = (
    ("gpu_presence", "node", 8, 8, "GPUs", "PCI bus against NVML"),
    ("pcie_link_width_load", "gpu", 16, 16, "lanes", "profile h200: HGX baseboard, x16 to every GPU"),
    ("pcie_link_speed_load", "gpu", 4, 4, "generation", "policy pcie_link.gen"),
    ("aspm_off", "gpu", "off", "off", "", "policy kernel_args: pcie_aspm=off"),
    ("aer_owned", "node", "kernel", "kernel", "", "_OSC grant of every root bridge"),
    ("aer_quiet_load", "gpu", 0, 0, "errors", "policy monitor.aer_per_5min over the length of the load"),
    ("power_limit", "gpu", 651.0, 651.0, "W", "policy gpu.power_limit: 93 % of 700 W"),
    ("persistence", "gpu", "on", "on", "", "policy gpu.persistence"),
    ("ecc_on", "gpu", "on", "on", "", "policy gpu.ecc"),
    ("row_remap", "gpu", 0, 0, "rows", "NVIDIA GPU memory error management, r580"),
    ("clock_reasons_load", "gpu", "0x0", "0x0", "mask 0xe8", "NVIDIA DCGM: failing clock-event reasons"),
    ("temperature_margin_load", "gpu", 19, 5, "°C", "profile h200: NVML T.Limit"),
    ("probe_performance", "gpu", 561.0, 500.0, "TFLOP/s", "profile h200: measured on H200 SXM at 700 W"),
    ("probe_bitwise", "gpu", 0, 0, "mismatches", "any flipped bit is a fault"),
    ("no_xid", "node", 0, 0, "Xids", "NVIDIA Xid catalogue r580"),
)


def results(gpus: int, *changed: CheckResult) -> tuple[CheckResult, ...]:
    """All checks passed, but for the results given, which replace those of the same id and subject."""
    taken = {(result.id, result.subject) for result in changed}
    passed = [
        CheckResult(
            id=id_,
            subject=subject,
            status="PASS",
            reason=f"{subject} has what it should have",
            measured=measured + index % 3 if id_ == "temperature_margin_load" else measured,
            limit=limit,
            unit=unit,
            source=source,
            evidence=(f"facts.after#/nvml/gpus/{index}",),
        )
        for id_, where, measured, limit, unit, source in CHECKS
        for index, subject in enumerate(
            ["node"] if where == "node" else [address(gpu) for gpu in range(gpus)]
        )
        if (id_, subject) not in taken
    ]
    return (*passed, *changed)


def finding(id_: str, subject: str, status: Status, reason: str, **fields: Any) -> CheckResult:
    """One result that is not a plain PASS."""
    return CheckResult(id=id_, subject=subject, status=status, reason=reason, **fields)


def certificate(host: str, gpus: int, checks: tuple[CheckResult, ...]) -> Certificate:
    """Judged as the product judges: a FAIL rejects, else an ERROR leaves it open."""
    bad = [check for check in checks if check.status in ("FAIL", "ERROR")]
    statuses = {check.status for check in bad}
    verdict = "rejected" if "FAIL" in statuses else "inconclusive" if "ERROR" in statuses else "certified"
    return Certificate(
        host=host,
        run="20261130-100000-7f3a",
        verdict=verdict,
        reasons=tuple(
            f"{check.id}{'' if check.subject == 'node' else ' ' + check.subject}: {check.reason}"
            for check in bad
        ),
        level="standard",
        workload="vit-g",
        simulated=True,
        issued="2026-11-30T10:04:00Z",
        expires="2027-02-28T10:04:00Z",
        nodeprep_version="0.1.0",
        profile="h200",
        identity=Identity(
            product="Supermicro SYS-821GE-TNHR",
            product_serial=f"S50{host[-2:]}",
            product_uuid="3f0c9a00-1111-11ee-8000-3cecef000001",
            board="Supermicro X13DEG-OAD",
            board_serial="OM23BS01",
            bios_version="2.4 (2025-05-12)",
            bmc="unreadable: no IPMI device",
            cpu_model="INTEL(R) XEON(R) PLATINUM 8570",
            cpu_count=224,
            memory_bytes=2199023255552,
            gpus=tuple(
                GpuIdentity(
                    pci_address=address(gpu),
                    uuid=uuid(gpu),
                    serial=f"16516230{gpu:05d}",
                    name="NVIDIA H200",
                    vbios_version="96.00.BC.00.03",
                )
                for gpu in range(gpus)
            ),
        ),
        configuration=Configuration(
            values={
                "kernel.cmdline": "BOOT_IMAGE=/vmlinuz pcie_aspm=off iommu=off pcie_ports=native",
                "kernel.release": "6.8.0-60-generic",
                "driver.version": "580.159.03",
                **{
                    f"gpu.{address(gpu)}.{key}": value
                    for gpu in range(gpus)
                    for key, value in (("power_limit_w", "651"), ("persistence", "on"), ("ecc", "on"))
                },
            }
        ),
        checks=checks,
        probe=ProbeSummary(state="completed", backend="numpy", duration_s=75.2, injected="", gpus={}),
        digests={
            "policy": "11" * 32,
            "content": "22" * 32,
            "facts_before": "33" * 32,
            "probe_result": "44" * 32,
        },
    )


def plan(host: str) -> Plan:
    """Two things as wanted, one to change, one refused."""
    return Plan(
        host=host,
        simulated=True,
        profile="h200",
        policy_digest="11" * 32,
        changes=(
            Change(
                knob="gpu_power_limit",
                subject=address(0),
                status="change",
                old="700 W",
                new="651 W",
                why="policy gpu.power_limit: 93%",
                risks=("less throughput on workloads that reach the limit",),
            ),
            Change(
                knob="kernel_args",
                subject="node",
                status="refused",
                old="",
                new="iommu=off",
                why="policy kernel_args.present",
                reason="448 logical CPUs: without an IOMMU the kernel loses x2APIC and brings up 255 of them",
                risks=("CPUs may be lost",),
                needs_reboot=True,
            ),
            Change(knob="gpu_persistence", subject="node", status="ok", old="on", new="on", why="policy"),
        ),
    )


def node(host: str, index: int, gpus: int, checks: tuple[CheckResult, ...], **how: Any) -> NodeView:
    """A node that ran to its end.

    Args:
        host: Its name.
        index: Its place, from which the noise of its telemetry comes.
        gpus: How many it has.
        checks: Its results.
        how: slow, narrow, flipped, burst (a GPU each), absent (GPUs), injected, events, samples.
    """
    slow, narrow, flipped, burst = (how.get(name) for name in ("slow", "narrow", "flipped", "burst"))
    absent = how.get("absent", ())
    working = [gpu for gpu in range(gpus) if gpu not in absent]
    before = facts(host, gpus, after=False, absent=absent)
    after = facts(host, gpus, after=True, absent=absent, burst=burst, events=how.get("events", ()))
    phases = ("observe", "probe", "judge")
    return NodeView(
        record=HostRecord(host=host, state="done", phases=dict.fromkeys(phases, "done")),
        facts_before=before,
        facts_after=after,
        plan=plan(host),
        probe=probe(
            host,
            tuple(
                gpu_run(gpu, slow=gpu == slow, narrow=gpu == narrow, flipped=gpu == flipped)
                for gpu in working
            ),
            injected=how.get("injected", ""),
        ),
        telemetry=tuple(
            telemetry(index, gpu, slow=gpu == slow, narrow=gpu == narrow, samples=how.get("samples", 150))
            for gpu in working
        ),
        certificate=certificate(host, gpus, checks),
        key_id="c0ffee" * 10 + "abcd",
    )


def event(sequence: int, kind: str, text: str, *, device: str = "", xid: int | None = None) -> KernelEvent:
    """One kernel log line, some seconds into the load."""
    return KernelEvent(
        sequence=2210 + sequence,
        monotonic_us=620_000_000 + sequence * 1_700_000,
        priority=3 if xid else 4,
        kind=kind,
        text=text,
        device=device,
        xid=xid,
    )


def healthy(host: str, index: int, gpus: int, samples: int = 150) -> NodeView:
    """Certified, with one waived and one skipped check."""
    return node(
        host,
        index,
        gpus,
        results(
            gpus,
            finding(
                "persistence",
                address(0),
                "SKIPPED",
                "persistence mode is off",
                measured="off",
                limit="on",
                source="policy gpu.persistence",
                waiver=WAIVER,
                waived_status="FAIL",
            ),
            finding("fabric", "node", "SKIPPED", "this board has no NVLink fabric to register with"),
        ),
        samples=samples,
    )


def run_view(gpus: int = 8, extra: int = 0, samples: int = 150) -> RunView:
    """The whole run: one node of each kind, and `extra` healthy ones."""
    hung_host = "gpu06"
    error = "NVML hung in nvmlDeviceGetTemperature on GPU 3 (0000:4a:00.0), killed after 30.0 s"
    hung = replace(
        healthy(hung_host, 5, gpus),
        facts_before=facts(hung_host, gpus, after=False, hung=True),
        facts_after=None,
        probe=None,
        telemetry=(),
        certificate=certificate(
            hung_host,
            gpus,
            (
                finding("gpu_presence", "node", "ERROR", error, limit=gpus, unit="GPUs", source="PCI bus"),
                finding("power_limit", "node", "ERROR", error),
                finding("probe_performance", "node", "ERROR", "not measured: NVML does not answer"),
            ),
        ),
    )
    nodes = [
        healthy("gpu01", 0, gpus, samples),
        node(
            "gpu02",
            1,
            gpus,
            results(
                gpus,
                finding(
                    "pcie_link_width_load",
                    address(2),
                    "FAIL",
                    "the link trained to x8 under load, x16 is wanted",
                    measured=8,
                    limit=16,
                    unit="lanes",
                    source="profile h200: HGX baseboard, x16 to every GPU",
                    evidence=("probe#/gpus/2/telemetry/link_width_lanes",),
                ),
            ),
            narrow=2,
            samples=samples,
        ),
        node(
            "gpu03",
            2,
            gpus,
            results(
                gpus,
                finding(
                    "gpu_presence",
                    "node",
                    "FAIL",
                    f"{address(5)} is on the PCI bus and not in NVML",
                    measured=gpus - 1,
                    limit=gpus,
                    unit="GPUs",
                    source="PCI bus against NVML",
                ),
            ),
            absent=(5,),
            events=(event(3, "xid", EVENT_XSS, device=address(0), xid=79),),
            samples=samples,
        ),
        node(
            "gpu04",
            3,
            gpus,
            results(
                gpus,
                finding(
                    "probe_bitwise",
                    address(1),
                    "FAIL",
                    f"23 of 50 iterations differed in block 7 {SCRIPT}{IMAGE}",
                    measured=23,
                    limit=0,
                    unit="mismatches",
                    source="any flipped bit is a fault",
                    evidence=("probe#/gpus/1/digests",),
                ),
            ),
            flipped=1,
            injected="flip:block=7,bit=0",
            samples=samples,
        ),
        node(
            "gpu05",
            4,
            gpus,
            results(
                gpus,
                finding(
                    "aer_quiet_load",
                    port(6),
                    "FAIL",
                    "1449 corrected errors above 0000:7d:00.0 during the load: RxErr 1412, BadDLLP 37",
                    measured=1449,
                    limit=25,
                    unit="errors",
                    source="policy monitor.aer_per_5min over the length of the load",
                    evidence=("facts.after#/pci/devices/12/aer",),
                ),
                finding(
                    "clock_reasons_load",
                    address(4),
                    "FAIL",
                    "hardware thermal slowdown (0x40) in 61 of 108 samples",
                    measured="0x40",
                    limit="0x0",
                    unit="mask 0xe8",
                    source="NVIDIA DCGM: failing clock-event reasons",
                ),
            ),
            burst=6,
            slow=4,
            events=tuple(
                event(
                    index,
                    "aer",
                    f"pcieport {port(6)}: AER: Corrected error message received from {port(6)}",
                    device=port(6),
                )
                for index in range(1, 6)
            ),
            samples=samples,
        ),
        hung,
        NodeView(
            record=HostRecord(
                host="gpu07",
                state="unreachable",
                phases={"observe": "unreachable"},
                error="ssh: connect to host gpu07 port 22: No route to host",
                hint="is the node powered on? ping its BMC",
            )
        ),
        NodeView(record=HostRecord(host="gpu08", state="missing")),
        NodeView(record=HostRecord(host=f"gpu09{IMAGE}")),
    ]
    # Many nodes share the documents of the first: a large page is wanted, not 100 stories.
    nodes += [
        replace(nodes[0], record=replace(nodes[0].record, host=f"node{index:03d}")) for index in range(extra)
    ]
    return RunView(
        run=Run(
            id="20261130-100000-7f3a",
            verb="certify",
            started_at="2026-11-30T10:00:00Z",
            ended_at="2026-11-30T10:04:12Z",
            hosts=tuple(node.record for node in nodes),
            level="standard",
            workload="vit-g",
            simulated=True,
            nodeprep_version="0.1.0",
        ),
        nodes=tuple(nodes),
    )
