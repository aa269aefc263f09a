"""What GRUB's files together ask for, and what of it runs."""

from __future__ import annotations

from collections.abc import Sequence

from nodeprep.diagnose.event import Event

# Words that boot loaders and installers put in or take out by themselves.
_NOT_WISHED = (
    "root=",
    "ro",
    "rw",
    "BOOT_IMAGE=",
    "initrd=",
    "quiet",
    "splash",
    "rhgb",
    "$",
    "crashkernel=",
    "vt.handoff",
)


def wanted(variables: Sequence[Event]) -> tuple[list[str], dict[str, list[Event]]]:
    """Arguments that the files ask for when read in GRUB's order, and those that a later file throws away.

    Returns:
        Arguments that hold; and each lost argument with the assignments that lost it.
    """
    held: dict[str, list[str]] = {}
    lost: dict[str, list[Event]] = {}
    for event in sorted(variables, key=lambda event: (_is_drop_in(event), str(event.data["file"]))):
        name, words = str(event.data["name"]), [str(word) for word in event.data["args"]]
        keeps = any(word.strip("{}$") == name or word in (f"${name}", f"${{{name}}}") for word in words)
        before = held.get(name, [])
        if keeps:
            words = [*before, *words]
        else:
            for word in before:
                if word not in words and not word.startswith(_NOT_WISHED):
                    lost.setdefault(word, []).append(event)
        held[name] = words
    kept = [word for words in held.values() for word in words if not word.startswith(_NOT_WISHED)]
    return kept, {word: events for word, events in lost.items() if word not in kept}


def asked_for(entries: Sequence[Event]) -> list[str]:
    """Arguments of boot entries that nobody puts in but on purpose."""
    words = dict.fromkeys(str(word) for event in entries for word in event.data["args"])
    return [word for word in words if not word.startswith(_NOT_WISHED)]


def missing(words: Sequence[str], running: Event) -> list[str]:
    """Arguments that the running kernel does not have."""
    have = set(running.data["args"])
    return [word for word in dict.fromkeys(words) if word not in have]


def _is_drop_in(event: Event) -> bool:
    file = str(event.data["file"])
    return ".d/" in file or ".d-" in file or file.endswith(".cfg")
