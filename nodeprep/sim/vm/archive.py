"""Which Debian archive the packages come from: the one that this machine's own apt uses."""

from __future__ import annotations

from nodeprep.sim.vm.programs import VmError, run


def archive(suite: str) -> str:
    """Address of the archive, which has the suite's backports too.

    Raises:
        VmError: apt knows no archive of this suite.
    """
    words = ["apt-get", "indextargets", "--format", "$(REPO_URI)"]
    said = run([*words, "Identifier: Packages", f"Codename: {suite}", "Component: main"])
    found = sorted({line.strip().rstrip("/") for line in said.splitlines() if line.strip()})
    if not found:
        raise VmError(f"apt knows no archive of Debian {suite}: add one to its sources and update")
    return found[0]
