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
from typing import Any, Dict, List, Optional, Sequence, Tuple

from .. import durable
from ..kernel_cmdline import Edit, words
from ..paths import exists, list_folder, read_text
from . import _bls, _grub_cfg, _tools
from ._bls import BlsEntry
from ._bls_loader import KERNELOPTS, BlsLoader, undone, without_variables
from ._boot_loader import TRIAL_TITLE, Entry, Refusal, kernel_release, program, same_arguments
from ._grub_cfg import GrubCfg
from ._grub_next_entry import NextEntry, cannot_tell, must_be_possible
from ._grub_script import expand, kernel_words, quote, tokens
from ._grub_trial import grub_arguments

_ENTRIES = "/boot/loader/entries"
_CFG = "/boot/grub2/grub.cfg"
_ENV = "/boot/grub2/grubenv"
_EFI = "/boot/efi/EFI"
_DEFAULT_GRUB = "/etc/default/grub"
_KERNELOPTS = "kernelopts"
_TRIAL_FILE = f"{_ENTRIES}/{_bls.TRIAL_NAME}.conf"
_LINE = re.compile(r"^GRUB_CMDLINE_LINUX=(?P<quote>[\"']?)(?P<value>.*)(?P=quote)$", re.MULTILINE)
_MACHINE_ID = re.compile(r"[0-9a-f]{32}")

# grubby splits at spaces and puts words into regular expressions; blscfg expands variables first.
_TOO_MUCH_FOR_GRUBBY = re.compile(r"[\s\"'\\$*^\[\]|]")


class Grubby(BlsLoader):
    """grubby and BLS entries."""

    id = "grubby"
    look = "grubby --info=DEFAULT"

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

    def _must_be_editable(self) -> None:
        self._must_be_of_this_machine()

    def _entries(self) -> List[BlsEntry]:
        return _bls.read(self.root, _ENTRIES)

    def _edit_all(self, edit: Edit) -> None:
        """Has grubby edit all entries, and keeps /etc/kernel/cmdline in step."""
        before = self._default()
        add, remove = _grubby_words(edit, self._cmdline(before))
        arguments = [f"--remove-args={' '.join(remove)}"] if remove else []
        arguments += [f"--args={' '.join(add)}"] if add else []
        if arguments:
            self._run(["grubby", "--update-kernel=ALL", *arguments])
        now = durable.content(self.root, self.kernel_cmdline)
        if now is None and KERNELOPTS in before.options:
            return
        # Without this file a new kernel takes /proc/cmdline, where a trial's marker may stand.
        base = now if now is not None else without_variables(before.options)
        durable.put(self.root, self.kernel_cmdline, edit.apply(base.strip()) + "\n")

    def _state(self) -> Dict[str, Any]:
        return {
            **super()._state(),
            _KERNELOPTS: self._next.environment().get(_KERNELOPTS),
            "default_grub": durable.content(self.root, _DEFAULT_GRUB),
        }

    def _put_back(self, state: Dict[str, Any]) -> None:
        super()._put_back(state)
        kernelopts = state[_KERNELOPTS]
        if self._next.environment().get(_KERNELOPTS) != kernelopts:
            self._next.write(
                *(["unset", _KERNELOPTS] if kernelopts is None else ["set", f"kernelopts={kernelopts}"])
            )
        self._put(_DEFAULT_GRUB, state["default_grub"])

    def _without_edits(
        self, then: Dict[str, Any], now: Dict[str, Any], edits: Sequence[Edit]
    ) -> Dict[str, Any]:
        old, new = then[_KERNELOPTS], now[_KERNELOPTS]
        return {
            **super()._without_edits(then, now, edits),
            _KERNELOPTS: new if old is None or new is None else undone(old, new, edits),
            "default_grub": _line_without(then, now["default_grub"], edits),
        }


def _line_without(then: Dict[str, Any], now: Optional[str], edits: Sequence[Edit]) -> Optional[str]:
    """/etc/default/grub of now, whose line of arguments grubby edits too, without what it has made of it."""
    old, new = (_LINE.search(text or "") for text in (then["default_grub"], now))
    if now is None or old is None or new is None:
        return now
    cmdline, asked = then["cmdline"], []
    for edit in edits:
        add, remove = _grubby_words(edit, cmdline)
        asked.append(Edit(present=tuple(add), absent=tuple(remove)))
        cmdline = edit.apply(cmdline)
    value = undone(old["value"], new["value"], asked)
    quote_mark = new["quote"] or '"'
    line = old.group() if value == old["value"] else f"GRUB_CMDLINE_LINUX={quote_mark}{value}{quote_mark}"
    return now[: new.start()] + line + now[new.end() :]


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
