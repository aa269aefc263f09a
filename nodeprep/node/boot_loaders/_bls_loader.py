"""What boot loaders with entries in files of their own share: an edit of all of them, and its way back.

The way back undoes nodeprep's own edits and nothing else: what others have added to an entry since stays,
as do their kernels' entries.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Dict, List, Optional, Sequence

from .. import durable
from ..kernel_cmdline import Edit, words
from ._bls import BlsEntry
from ._boot_loader import BootLoader, Refusal, difference, same_arguments, same_effect

# RHEL 8 keeps the arguments of all entries in this variable of GRUB's.
KERNELOPTS = "$kernelopts"


class BlsLoader(BootLoader):
    """A boot loader whose entries are read and edited one by one.

    Attributes:
        look: Command that shows its entries, for hints.
        kernel_cmdline: File with the arguments of kernels that are installed later.
    """

    look = ""
    kernel_cmdline = "/etc/kernel/cmdline"

    def commit(self, edit: Edit) -> None:
        """Edits every entry and what later kernels take; all of it or nothing."""
        self._must_be_writable()
        self._must_be_editable()
        expected = edit.apply(self.default_entry().cmdline)
        backup = self._state()
        try:
            self._edit_all(edit)
            after = self.default_entry().cmdline
            if not edit.satisfied(after) or not same_arguments(after, expected):
                raise Refusal(
                    f"the default boot entry would have other arguments than asked for "
                    f"({difference(expected, after)})",
                    f"tuned or another tool may write the boot entries here too: look at `{self.look}`",
                )
        except BaseException:
            self._put_back(backup)
            raise

    def snapshot(self) -> Dict[str, Any]:
        """Arguments of every entry, and of kernels installed later."""
        return {
            "back_end": self.id,
            "cmdline": self.default_entry().cmdline,
            "options": self._default().options,
            **self._state(),
        }

    def restore(self, snapshot: Dict[str, Any], edits: Sequence[Edit] = ()) -> None:
        """Every entry loses what the edits have made of it, those of kernels installed since too."""
        self._must_be_mine(snapshot)
        self._must_be_writable()
        now, expected = self._state(), undone(snapshot["cmdline"], self.default_entry().cmdline, edits)
        self._put_back(self._without_edits(snapshot, now, edits))
        after = self.default_entry().cmdline
        if not same_arguments(after, expected):
            raise Refusal(
                f"the default boot entry does not have the arguments of the restore point "
                f"({difference(expected, after)})",
                f"look at `{self.look}`",
            )

    def _must_be_editable(self) -> None:
        """Raises: Refusal: The entries of this node cannot be edited by the back end."""

    @abstractmethod
    def _edit_all(self, edit: Edit) -> None:
        """Makes the edit wherever arguments are kept."""

    @abstractmethod
    def _default(self) -> BlsEntry:
        """The entry of the next plain boot."""

    @abstractmethod
    def _entries(self) -> List[BlsEntry]:
        """Every entry but the one-shot one."""

    def _state(self) -> Dict[str, Any]:
        """Everything that `_edit_all` may change; can be stored as JSON."""
        return {
            "entries": {entry.path: entry.options for entry in self._entries()},
            "kernel_cmdline": durable.content(self.root, self.kernel_cmdline),
        }

    def _put_back(self, state: Dict[str, Any]) -> None:
        """Writes what is not as in a state."""
        for entry in self._entries():
            options = state["entries"].get(entry.path)
            if options is not None and options != entry.options:
                durable.put(self.root, entry.path, entry.with_options(options))
        self._put(self.kernel_cmdline, state["kernel_cmdline"])

    def _without_edits(
        self, then: Dict[str, Any], now: Dict[str, Any], edits: Sequence[Edit]
    ) -> Dict[str, Any]:
        """The state of now without what edits have made of that of then."""
        return {
            "entries": {
                # An entry that takes GRUB's variable has no arguments of its own.
                path: options
                if KERNELOPTS in options
                else undone(then["entries"].get(path, then["cmdline"]), options, edits)
                for path, options in now["entries"].items()
            },
            "kernel_cmdline": self._kernel_cmdline_without(then, now["kernel_cmdline"], edits),
        }

    def _kernel_cmdline_without(
        self, then: Dict[str, Any], now: Optional[str], edits: Sequence[Edit]
    ) -> Optional[str]:
        """Text of the file for later kernels; None where nodeprep had made it and nobody has changed it."""
        if now is None:
            return None
        before = then["kernel_cmdline"]
        if before is None:
            base = without_variables(then["options"])
            text = undone(base, now.strip(), edits)
            return None if edits and text == base else text + "\n"
        text = undone(before.strip(), now.strip(), edits)
        return before if text == before.strip() else text + "\n"

    def _put(self, path: str, text: Optional[str]) -> None:
        if durable.content(self.root, path) != text:
            durable.put(self.root, path, text)


def undone(then: str, now: str, edits: Sequence[Edit]) -> str:
    """A command line without what edits have made of it.

    Args:
        then: From before the first of them.
        now: Since then, others may have changed it too.
        edits: In their order.
    """
    made = then
    for edit in edits:
        made = edit.apply(made)
    if same_effect(now, made):
        return then
    old, new = words(then), words(made)
    return Edit(
        present=tuple(word for word in old if word not in new),
        absent=tuple(word for word in new if word not in old),
    ).apply(now)


def without_variables(options: str) -> str:
    """Options without GRUB's variables, which only its own entries may name."""
    return " ".join(word for word in options.split() if not word.startswith("$"))
