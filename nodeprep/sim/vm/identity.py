"""What tells one machine from another: its name, its host key, and whose keys open it."""

from __future__ import annotations

import io
import shutil
import tarfile
from pathlib import Path

from nodeprep.sim.vm import cache, recipe
from nodeprep.sim.vm.image import identity_offset
from nodeprep.sim.vm.layout import Layout
from nodeprep.sim.vm.programs import VmError, run

# A user with passwordless sudo, as operators have it, and root for what the tests do behind the tool's back.
USER = "sre"
_HOMES = ("root", "home/sre")


def copy_user_key(folder: Path) -> str:
    """Put the key that opens the machines into a rack's folder, and return its public half.

    All racks of a cache have the same key: a machine that starts warm already knows it. The machines
    listen on 127.0.0.1 only.
    """
    kept = cache.entry("user-key-1", lambda work: _make_key(work / "id", "virtual rack"))
    for name in ("id", "id.pub"):
        shutil.copy(kept / name, folder / name)
    return (folder / "id.pub").read_text().strip()


def _make_key(path: Path, comment: str) -> None:
    run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", path])


def give_identity(layout: Layout, name: str, user_key: str) -> None:
    """Write the archive that the first boot unpacks to the second partition of the machine's disk."""
    _make_key(layout.host_key, name)
    public = public_half(layout.host_key)
    files = {
        "etc/hostname": (f"{name}\n", 0o644),
        "etc/hosts": (f"127.0.0.1 localhost\n127.0.1.1 {name}\n", 0o644),
        "etc/ssh/ssh_host_ed25519_key": (layout.host_key.read_text(), 0o600),
        "etc/ssh/ssh_host_ed25519_key.pub": (public, 0o644),
        **{f"{home}/.ssh/authorized_keys": (user_key + "\n", 0o600) for home in _HOMES},
    }
    archive = _archive(files)
    if len(archive) > recipe.IDENTITY_MIB * 1024 * 1024:
        raise VmError(f"the identity of {name} has {len(archive)} bytes, more than its partition")
    source = layout.folder / "identity.tar"
    source.write_bytes(archive)
    write = f"write -q -s {source} {identity_offset()} {len(archive)}"
    run(["qemu-io", "-f", "qcow2", "-c", write, layout.disk])
    source.unlink()


def public_half(key: Path) -> str:
    """The public half of a key."""
    return key.with_name(f"{key.name}.pub").read_text()


def known_host(layout: Layout, port: int) -> str:
    """The line of a known_hosts file for the machine."""
    kind, key = public_half(layout.host_key).split()[:2]
    return f"[127.0.0.1]:{port} {kind} {key}\n"


def _archive(files: dict[str, tuple[str, int]]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for name, (text, mode) in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            entry.mode = mode
            archive.addfile(entry, io.BytesIO(text.encode()))
    return made.getvalue()
