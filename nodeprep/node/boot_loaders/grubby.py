"""GRUB with boot entries in files of their own, edited by grubby: RHEL 8 and later, its rebuilds, Fedora.

grub2-mkconfig is never run: since RHEL 9.3 it does not write arguments into the entries any more, and
with UEFI its usual output file is a stub. grubby changes all entries; RHEL 8 keeps the arguments in
GRUB's variable kernelopts, later ones in each entry. Kernels installed later take /etc/kernel/cmdline.

Not run against the real grubby in nodeprep's tests: no Debian package has it. The tests have a program
that does what grubby-bls of Fedora does, and GRUB's own grub-editenv.
Source: grubby-bls (update_args, update_bls_fragment), 10_linux and blscfg.c of Fedora's packages.
"""

from __future__ import annotations

import re
from typing import Any, Dict, List, Optional, Tuple

from .. import durable
from ..kernel_cmdline import Edit, words
from ..paths import exists, list_folder, read_text
from . import _bls, _grub_cfg, _tools
from ._bls import BlsEntry
from ._boot_loader import (
    TRIAL_TITLE,
    BootLoader,
    Entry,
    Refusal,
    difference,
    kernel_release,
    program,
    same_arguments,
    undoing,
)
from ._grub_cfg import GrubCfg
from ._grub_next_entry import NextEntry, cannot_tell, must_be_possible
from ._grub_script import expand, kernel_words, quote, tokens
from ._grub_trial import grub_arguments

_ENTRIES = "/boot/loader/entries"
_CFG = "/boot/grub2/grub.cfg"
_ENV = "/boot/grub2/grubenv"
_EFI = "/boot/efi/EFI"
_KERNEL_CMDLINE = "/etc/kernel/cmdline"
_DEFAULT_GRUB = "/etc/default/grub"
_KERNELOPTS = "kernelopts"
_TRIAL_FILE = f"{_ENTRIES}/{_bls.TRIAL_NAME}.conf"
_MACHINE_ID = re.compile(r"[0-9a-f]{32}")

# grubby splits at spaces and puts words into regular expressions; blscfg expands variables first.
_TOO_MUCH_FOR_GRUBBY = re.compile(r"[\s\"'\\$*^\[\]|]")


class Grubby(BootLoader):
    """grubby and BLS entries."""

    id = "grubby"

    def __init__(self, root: str, run: Optional[_tools.Run] = None) -> None:
        super().__init__(root, run)
        self._next = NextEntry(root, _CFG, _ENV, prefix="grub2", entry=_bls.TRIAL_NAME, run=self._run)

    @classmethod
    def recognise(cls, root: str) -> str:
        """The program grubby and a folder with entries."""
        found = program(root, "grubby")
        return f"{found} and {_ENTRIES}" if found and exists(root, _ENTRIES) else ""

    def default_entry(self) -> Entry:
        """What saved_entry chooses among the entries."""
        return self._told(self._default())

    def one_shot_obstacle(self) -> str:
        """Why GRUB could not take back a one-shot choice."""
        try:
            config = self._config()
            if self._asks_for_password(config) and "--unrestricted" not in self._default().value("grub_arg"):
                return "GRUB asks for a password before every boot entry, so no boot comes up by itself"
            custom = f"{self._cfg().rpartition('/')[0]}/custom.cfg"
            return self._next.obstacle(config, self._next.environment(), custom)
        except (OSError, ValueError, _tools.ToolError, Refusal) as problem:
            return cannot_tell(problem)

    def stage_trial(self, cmdline: str) -> None:
        """Writes a copy of the default entry, with a name that is below all others."""
        self._must_be_writable()
        must_be_possible(self.one_shot_obstacle())
        self._must_be_of_this_machine()
        arguments = grub_arguments(cmdline)
        if any("$" in argument for argument in arguments):
            raise Refusal("GRUB cannot pass on a kernel argument with $ in a boot entry of this kind")
        text = self._default().with_options(" ".join(quote(each) for each in arguments), TRIAL_TITLE)
        durable.put(self.root, _TRIAL_FILE, text)
        written = self.staged()
        if written is None or not same_arguments(written, cmdline):
            durable.put(self.root, _TRIAL_FILE, None)
            raise Refusal(f"the one-shot entry would give the kernel other arguments: {written}")

    def staged(self) -> Optional[str]:
        """From the entry's file."""
        if not exists(self.root, _TRIAL_FILE):
            return None
        return self._cmdline(_bls.read_entry(self.root, _TRIAL_FILE))

    def arm(self) -> None:
        """next_entry in grubenv."""
        self._must_be_writable()
        if self.staged() is None:
            raise Refusal("there is no one-shot boot entry to arm", "stage it first")
        must_be_possible(self.one_shot_obstacle())
        self._next.choose()

    def armed(self) -> bool:
        """From grubenv."""
        return self._next.chosen()

    def disarm(self) -> None:
        """Takes next_entry away when it is nodeprep's."""
        self._must_be_writable()
        self._next.take_back()

    def unstage(self) -> None:
        """Removes the entry's file."""
        self.disarm()
        durable.put(self.root, _TRIAL_FILE, None)

    def commit(self, edit: Edit) -> None:
        """Has grubby edit all entries, and keeps /etc/kernel/cmdline in step."""
        self._must_be_writable()
        self._must_be_of_this_machine()
        before = self._default()
        expected = edit.apply(self._cmdline(before))
        backup = self._state()
        try:
            self._edit_entries(edit, before)
            self._edit_kernel_cmdline(edit, before)
            after = self.default_entry()
            if not edit.satisfied(after.cmdline) or not same_arguments(after.cmdline, expected):
                raise Refusal(
                    f"grubby did not do what was asked: the default boot entry would have other arguments "
                    f"({difference(expected, after.cmdline)})",
                    "tuned or another tool may add arguments of its own: look at `grubby --info=DEFAULT`",
                )
        except BaseException:
            self._put_back(backup)
            raise

    def snapshot(self) -> Dict[str, Any]:
        """Arguments of every entry, and of kernels installed later."""
        return {"back_end": self.id, "cmdline": self.default_entry().cmdline, **self._state()}

    def restore(self, snapshot: Dict[str, Any]) -> None:
        """Entries of then get their arguments back, kernels installed since the same difference."""
        self._must_be_mine(snapshot)
        self._must_be_writable()
        now = self.default_entry().cmdline
        undo = undoing(snapshot["cmdline"], now)
        new = [entry for entry in _bls.read(self.root, _ENTRIES) if entry.path not in snapshot["entries"]]
        grub = _with_line_of(durable.content(self.root, _DEFAULT_GRUB), snapshot["default_grub"])
        self._put_back({**snapshot, "default_grub": grub})
        for entry in new:
            durable.put(self.root, entry.path, entry.with_options(undo.apply(entry.options)))
        after = self.default_entry().cmdline
        if not undo.satisfied(after):
            raise Refusal(
                f"the default boot entry does not have the arguments of the restore point "
                f"({difference(snapshot['cmdline'], after)})",
                "look at `grubby --info=DEFAULT`",
            )

    def _default(self) -> BlsEntry:
        config = self._config()
        if not config.runs("blscfg"):
            raise ValueError(f"{self._cfg()} does not read the entries in {_ENTRIES} (no blscfg)")
        entries = _bls.grub_order(_bls.read(self.root, _ENTRIES))
        if not entries:
            raise ValueError(f"there is no boot entry in {_ENTRIES}")
        name = config.default_name(self._next.environment())
        if name.isdigit():
            return entries[int(name)] if int(name) < len(entries) else entries[0]
        return next((entry for entry in entries if name in (entry.id, entry.value("title"))), entries[0])

    def _told(self, entry: BlsEntry) -> Entry:
        release = kernel_release(self.root, entry.value("linux")) or entry.value("version")
        return Entry(entry.value("title"), release, self._cmdline(entry), entry.path)

    def _cmdline(self, entry: BlsEntry) -> str:
        """As blscfg makes it: variables first, then GRUB's own splitting."""
        variables = self._variables()
        text = re.sub(
            r"\$([A-Za-z_][A-Za-z0-9_]*)", lambda match: _known(match.group(1), variables), entry.options
        )
        return kernel_words([word for token in tokens(text) for word in expand(token.text, variables)])

    def _asks_for_password(self, config: GrubCfg) -> bool:
        """Whether there are superusers; 01_users has the code for them also where no password is set."""
        if not config.assigned("superusers"):
            return False
        users = f"{self._cfg().rpartition('/')[0]}/user.cfg"
        return not config.runs("source", "${prefix}/user.cfg") or exists(self.root, users)

    def _variables(self) -> Dict[str, str]:
        config = self._config()
        environment = self._next.environment()
        known = config.variables(environment)
        if _KERNELOPTS not in known:
            # grub.cfg has a value of its own for a damaged environment block.
            spare = next((value for value in config.assigned(_KERNELOPTS) if "$" not in value), "")
            known[_KERNELOPTS] = " ".join(expand(spare, {}))
        return known

    def _config(self) -> GrubCfg:
        return _grub_cfg.read(self.root, self._cfg())

    def _cfg(self) -> str:
        """The grub.cfg that is in force; RHEL 8 with UEFI has it on the EFI partition."""
        if exists(self.root, _CFG):
            return _CFG
        vendors = list_folder(self.root, _EFI) if exists(self.root, _EFI) else []
        found = [
            f"{_EFI}/{name}/grub.cfg" for name in vendors if exists(self.root, f"{_EFI}/{name}/grub.cfg")
        ]
        if len(found) != 1:
            raise ValueError(f"there is no {_CFG}, and not exactly one {_EFI}/*/grub.cfg either")
        return found[0]

    def _must_be_of_this_machine(self) -> None:
        """An image copied with the entries of another machine boots those, also after kernel updates."""
        machine = read_text(self.root, "/etc/machine-id")
        default = self._default()
        owner = default.id.partition("-")[0]
        if _MACHINE_ID.fullmatch(owner) and owner != machine:
            raise Refusal(
                f"the default boot entry {default.path} is of another machine ({owner}), left by a copied "
                "image: kernels that are installed on this node would not be booted",
                f"remove the entries of that machine: rm {_ENTRIES}/{owner}-*.conf, then run "
                f"kernel-install add $(uname -r) /lib/modules/$(uname -r)/vmlinuz",
            )

    def _edit_entries(self, edit: Edit, before: BlsEntry) -> None:
        add, remove = _grubby_words(edit, self._cmdline(before))
        arguments = [f"--remove-args={' '.join(remove)}"] if remove else []
        arguments += [f"--args={' '.join(add)}"] if add else []
        if arguments:
            self._run(["grubby", "--update-kernel=ALL", *arguments])

    def _edit_kernel_cmdline(self, edit: Edit, before: BlsEntry) -> None:
        now = durable.content(self.root, _KERNEL_CMDLINE)
        if now is None and "$" + _KERNELOPTS in before.options:
            return
        # Without this file a new kernel takes /proc/cmdline, where a trial's marker may stand.
        base = (
            now if now is not None else " ".join(w for w in before.options.split() if not w.startswith("$"))
        )
        durable.put(self.root, _KERNEL_CMDLINE, edit.apply(base.strip()) + "\n")

    def _state(self) -> Dict[str, Any]:
        entries = {entry.path: entry.options for entry in _bls.read(self.root, _ENTRIES)}
        return {
            "entries": entries,
            _KERNELOPTS: self._next.environment().get(_KERNELOPTS),
            "kernel_cmdline": durable.content(self.root, _KERNEL_CMDLINE),
            "default_grub": durable.content(self.root, _DEFAULT_GRUB),
        }

    def _put_back(self, state: Dict[str, Any]) -> None:
        for entry in _bls.read(self.root, _ENTRIES):
            options = state["entries"].get(entry.path)
            if options is not None and options != entry.options:
                durable.put(self.root, entry.path, entry.with_options(options))
        kernelopts = state[_KERNELOPTS]
        if self._next.environment().get(_KERNELOPTS) != kernelopts:
            self._next.write(
                *(["unset", _KERNELOPTS] if kernelopts is None else ["set", f"kernelopts={kernelopts}"])
            )
        for path, name in ((_KERNEL_CMDLINE, "kernel_cmdline"), (_DEFAULT_GRUB, "default_grub")):
            if durable.content(self.root, path) != state[name]:
                durable.put(self.root, path, state[name])


def _with_line_of(now: Optional[str], then: Optional[str]) -> Optional[str]:
    """The settings of now with the line of arguments, which grubby edits, from those of then."""
    line = re.compile(r"^GRUB_CMDLINE_LINUX=.*$", re.MULTILINE)
    old = line.search(then or "")
    return line.sub(lambda _: old.group() if old else "", now, count=1) if now and old else now


def _known(name: str, variables: Dict[str, str]) -> str:
    # blscfg takes nothing for a variable that is not set, as tuned_params on a node without tuned.
    return variables.get(name, "")


def _grubby_words(edit: Edit, cmdline: str) -> Tuple[List[str], List[str]]:
    """What to ask of grubby: it drops all values of a name when it adds one.

    Raises:
        Refusal: A word is more than grubby can take.
    """
    old, new = words(cmdline), words(edit.apply(cmdline))
    changed = {_name(word) for word in [*old, *new] if old.count(word) != new.count(word)}
    add = [word for word in new if _name(word) in changed]
    kept = {word.partition("=")[0] for word in add}
    spelled = dict.fromkeys(word.partition("=")[0] for word in old if _name(word) in changed)
    remove = [name for name in spelled if name not in kept]
    for word in [*add, *remove]:
        if _TOO_MUCH_FOR_GRUBBY.search(word):
            raise Refusal(
                f"grubby cannot take the kernel argument {word}",
                "it splits arguments at spaces and takes some characters for patterns; write it without them",
            )
    return add, remove


def _name(word: str) -> str:
    return word.partition("=")[0].replace("-", "_")
