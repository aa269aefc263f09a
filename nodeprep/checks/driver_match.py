"""The loaded driver, the library that talks to it and the module on disk are one version."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.checks._check import Check, Context
from nodeprep.checks._facts import facts, latest
from nodeprep.model.facts import Driver, NodeFacts
from nodeprep.model.reading import Unreadable
from nodeprep.model.result import CheckResult


def evaluate(context: Context) -> Iterator[CheckResult]:
    """One result on the node."""
    which = latest(context)
    yield CHECK.on("node", f"facts.{which}#/driver", _judge, facts(context, which))


def _judge(document: NodeFacts) -> CheckResult:
    driver = document.driver
    nouveau = driver.nouveau_loaded.require("whether nouveau is loaded")
    loaded = driver.nvidia_version.require("the version of the loaded NVIDIA module")
    library = document.nvml.driver_version.require("the driver version that NVML gives")
    disk = _on_disk(driver)
    wrong: list[str] = []
    if nouveau:
        wrong.append("nouveau is loaded and can hold a GPU: blacklist it and rebuild the initramfs")
    if library != loaded:
        wrong.append(f"NVML speaks for {library} but module {loaded} is loaded: reload the driver or reboot")
    if disk != loaded:
        wrong.append(
            f"module {disk} is on disk but {loaded} is loaded: the next boot runs another driver "
            "than the one certified; reboot first"
        )
    return CHECK.result(
        "FAIL" if wrong else "PASS",
        "node",
        "; ".join(wrong) if wrong else f"driver {loaded} is loaded, in the library and on disk",
        measured=f"loaded {loaded}, NVML {library}, on disk {disk}" + (", nouveau loaded" if nouveau else ""),
        limit="one version, no nouveau",
        source="nvml.h: LIB_RM_VERSION_MISMATCH, a driver upgraded without a reboot",
    )


def _on_disk(driver: Driver) -> str:
    """What the next load would take.

    Raises:
        Unreadable: There is no module file for the running kernel; says what to do about it.
    """
    try:
        return driver.nvidia_disk_version.require("the version of the NVIDIA module on disk")
    except Unreadable as error:
        raise Unreadable(
            f"{error}. Nobody knows which driver the next boot loads: install the module for the running "
            "kernel (dkms autoinstall, or the distribution's module package), or boot the kernel it was "
            "built for; inside a container make the host's /lib/modules visible"
        ) from error


CHECK = Check(
    id="driver_match",
    title="driver, library and module on disk match",
    phase="static",
    evaluate=evaluate,
)
