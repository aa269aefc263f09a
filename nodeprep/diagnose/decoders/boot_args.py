"""Kernel arguments where they are wished for and where they are in effect."""

from __future__ import annotations

import re
import shlex

from nodeprep.diagnose.decoder import Decoder
from nodeprep.diagnose.decoders._each import each
from nodeprep.diagnose.event import Event
from nodeprep.diagnose.line import Line

_CMDLINE = re.compile(
    r"(?:[Cc]ommand line: )?(?P<args>BOOT_IMAGE=\S+.*)|(?:Kernel )?[Cc]ommand line: (?P<other>.+)"
)
_VARIABLE = re.compile(r"^\s*(?:export )?(?P<name>GRUB_CMDLINE_LINUX(?:_DEFAULT)?)=(?P<value>.*)$")
_GRUBBY = re.compile(r'^args="(?P<args>.*)"$')
_BLS_OPTIONS = re.compile(r"^options\s+(?P<args>.*root=.*)$")
_MKCONFIG = re.compile(r"\bgrub2?-mkconfig\b(?P<bls>.*--update-bls-cmdline)?")
_UPDATE_GRUB = re.compile(r"^(?:[#$] )?(?:sudo )?update-grub\b")
_SOURCED = re.compile(r"^Sourcing file [`'](?P<file>/etc/default/grub[^']*)'")
_RELEASE = re.compile(r'^(?P<name>VERSION_ID|PRETTY_NAME)="?(?P<value>[^"]*)"?$')
_BLS_ON = re.compile(r"^GRUB_ENABLE_BLSCFG=\"?true")

_UNKNOWN = re.compile(r"PCI: Unknown option [`'](?P<option>[^']+)'")
# What systemd-boot, and an EFI stub, hand over: no BOOT_IMAGE, which is GRUB's word.
_LOADER_CMDLINE = re.compile(r"^initrd=\\\S+ .*\broot=")


def _parse(line: Line) -> Event | None:  # noqa: PLR0911  # one return a message
    text = line.text.rstrip()
    if match := _VARIABLE.match(text):
        data = {"name": match["name"], "args": _words(match["value"]), "file": line.source}
        return Event(kind="boot.grub_variable", lines=(line,), data=data)
    if match := _GRUBBY.match(text):
        return Event(kind="boot.entry", lines=(line,), data={"args": tuple(match["args"].split())})
    if match := _BLS_OPTIONS.match(text):
        return Event(kind="boot.entry", lines=(line,), data={"args": tuple(match["args"].split())})
    if match := _SOURCED.match(text):
        return Event(kind="boot.grub_sourced", lines=(line,), data={"file": match["file"]})
    if match := _MKCONFIG.search(text):
        kind = "boot.bls_updated" if match["bls"] else "boot.mkconfig_run"
        return Event(kind=kind, lines=(line,))
    if _UPDATE_GRUB.match(text):
        return Event(kind="boot.update_grub_run", lines=(line,))
    if _BLS_ON.match(text):
        return Event(kind="boot.bls_on", lines=(line,))
    if match := _RELEASE.match(text):
        return Event(kind="os.release", lines=(line,), data={"name": match["name"], "value": match["value"]})
    if match := _UNKNOWN.search(text):
        return Event(kind="boot.unknown_option", lines=(line,), data={"option": match["option"]})
    if ("BOOT_IMAGE=" in text or "ommand line: " in text) and (match := _CMDLINE.search(text)):
        args = tuple((match["args"] or match["other"]).split())
        return Event(kind="boot.cmdline", lines=(line,), data={"args": args})
    if match := _LOADER_CMDLINE.match(text):
        return Event(kind="boot.cmdline", lines=(line,), data={"args": tuple(text.split())})
    return None


def _words(value: str) -> tuple[str, ...]:
    """A shell value's words; a variable in it stays as a word of its own ("$GRUB_CMDLINE_LINUX")."""
    try:
        return tuple(word for part in shlex.split(value, comments=True) for word in part.split())
    except ValueError:
        return tuple(value.strip("\"'").split())


_WORDS = (
    "BOOT_IMAGE=",
    "ommand line: ",
    "GRUB_",
    'args="',
    "options ",
    "grub",
    "Sourcing file",
    "VERSION_ID=",
    "PRETTY_NAME=",
    "Unknown option",
    "initrd=",
)

DECODER = Decoder(
    id="boot_args",
    needles=(
        b"BOOT_IMAGE=",
        b"ommand line: ",
        b"GRUB_",
        b'args="',
        b"options root=",
        b"initrd=\\",
        b"mkconfig",
        b"update-grub",
        b"Sourcing file",
    ),
    decode=each(_WORDS, _parse),
)
