"""grub.cfg as GRUB reads it: its entries, and which of them the next plain boot takes.

Source: grub-core/normal/menu.c (get_entry_number, grub_menu_execute_entry) and
util/grub.d/00_header.in of GRUB, with the patches of Debian, Ubuntu, Red Hat and SUSE.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Dict, List, Mapping, Optional, Sequence, Tuple

from ..paths import read_bytes
from ._grub_script import Token, commands, expand, kernel_words, quote, tokens

_LINUX = re.compile(r"linux(16|efi)?$")
_ID_OPTIONS = ("--id", "$menuentry_id_option", "${menuentry_id_option}")
_OPTIONS_WITH_VALUE = (*_ID_OPTIONS, "--class", "--users", "--hotkey", "--source")

# Commands that write GRUB's environment. A trial must leave nothing behind for the boot after it:
# Ubuntu's initrdfail would even boot the trial a second time, with an initrd.
# Ubuntu's recordfail may stay: it writes nothing in a boot that was chosen for once (boot_once).
# Source: debian/patches/ubuntu-add-initrd-less-boot-fallback.patch of Ubuntu's grub2.
_LEAVES_TRACES = ("savedefault", "initrdfail")

Condition = Tuple[str, ...]


@dataclass(frozen=True)
class MenuEntry:
    """A menuentry or a submenu.

    Attributes:
        header: Its written words after the command, title first.
        title: As the menu shows it.
        id: Its --id, the title when it has none.
        body: Script between the braces, of a menuentry.
        children: Entries of a submenu.
        conditional: It stands inside an `if`, so it is not known whether it is in the menu.
    """

    header: Tuple[str, ...]
    title: str
    id: str
    body: str = ""
    children: Tuple[MenuEntry, ...] = ()
    conditional: bool = False

    def kernel(self, variables: Mapping[str, str]) -> Tuple[str, str]:
        """Path of the kernel as GRUB sees it, and the command line it is given.

        Raises:
            ValueError: There is no Linux kernel in the entry, or it cannot be told which one.
        """
        found = _linux_commands(self.body)
        if not found:
            raise ValueError(f"the boot entry {self.title!r} starts no Linux kernel by itself")
        if len(found) > 1 and "initrdfail" not in self.body:
            raise ValueError(f"the boot entry {self.title!r} has more than one linux command")
        # Ubuntu without initrd: the first is for the boot after a failed one, the last for a plain one.
        words = [each for word in found[-1][1:] for each in expand(word.text, variables)]
        if not words:
            raise ValueError(f"the boot entry {self.title!r} names no kernel")
        return words[0], kernel_words(words[1:])

    def copied(self, title: str, entry_id: str, arguments: Sequence[str]) -> str:
        """A menuentry that boots the same kernel in the same way with other arguments."""
        header = [quote(title), *self._options(), "--id", entry_id]
        return f"menuentry {' '.join(header)} {{{_with_arguments(self.body, arguments)}}}\n"

    def restricted(self) -> bool:
        """Whether it asks for a name and password where GRUB has superusers."""
        return "--unrestricted" not in self.header

    def _options(self) -> List[str]:
        options: List[str] = []
        words = iter(self.header[1:])
        for word in words:
            if word in _ID_OPTIONS:
                next(words, None)
            elif word.startswith("--id="):
                continue
            else:
                options.append(word)
        return options


@dataclass
class GrubCfg:
    """What a grub.cfg says.

    Attributes:
        entries: The menu.
        commands: Commands outside of entries and functions, with the conditions they stand under.
    """

    entries: List[MenuEntry] = field(default_factory=list)
    commands: List[Tuple[Tuple[str, ...], Tuple[Condition, ...]]] = field(default_factory=list)

    def default(self, environment: Mapping[str, str]) -> MenuEntry:
        """The entry that a boot without one-shot choice takes.

        Args:
            environment: GRUB's environment block.

        Raises:
            ValueError: It cannot be told.
        """
        return _choose(self.entries, self.default_name(environment))

    def variables(self, environment: Mapping[str, str]) -> Dict[str, str]:
        """What is known of GRUB's variables when an entry runs."""
        known = dict(environment)
        for words, conditions in self.commands:
            name, equals, value = _assignment(words)
            if equals and not conditions and re.fullmatch(r"[^$]*", value):
                known[name] = " ".join(expand(value, known)) if value else ""
        return known

    def assigned(self, name: str) -> List[str]:
        """All values that a variable may be given, as written."""
        found = [_assignment(words) for words, _ in self.commands]
        return [value for key, equals, value in found if equals and key == name]

    def runs(self, *command: str) -> bool:
        """Whether a command stands there in these written words, under whatever condition."""
        return any(words == command for words, _ in self.commands)

    def reads_custom(self) -> bool:
        """Whether it reads the custom.cfg beside it."""
        return any(self.runs("source", f"{place}/custom.cfg") for place in ("${config_directory}", "$prefix"))

    def overrules_next_entry(self) -> bool:
        """Whether the default is set, under no condition, after the code that takes it from next_entry."""
        overruled = False
        for words, conditions in self.commands:
            name, equals, value = _assignment(words)
            if equals and name == "default":
                overruled = "next_entry" not in value and (overruled or not conditions)
        return overruled

    def default_name(self, environment: Mapping[str, str]) -> str:
        """Number, title or id of the entry that a boot without one-shot choice takes, as GRUB is told it.

        Raises:
            ValueError: It cannot be told.
        """
        known = {"saved_entry": "", **environment}
        if known.get("prev_saved_entry"):
            known["saved_entry"] = known["prev_saved_entry"]
        chosen: Optional[str] = None
        for words, conditions in self.commands:
            name, equals, value = _assignment(words)
            if not equals or name != "default" or "next_entry" in value or _cannot_hold(conditions, known):
                continue
            renamed = _renamed_title(conditions)
            if renamed is not None:
                chosen = " ".join(expand(value, known)) if chosen == renamed else chosen
                continue
            new = " ".join(expand(value, known))
            if chosen not in (None, new) and conditions:
                raise ValueError("grub.cfg chooses its default entry under a condition that only GRUB knows")
            chosen = new
        return chosen or "0"


def parse(text: str) -> GrubCfg:
    """Reads a grub.cfg.

    Raises:
        ValueError: It is not closed somewhere.
    """
    config = GrubCfg()
    _Reader(text, config).read()
    return config


def read(root: str, path: str) -> GrubCfg:
    """Reads a grub.cfg below a root.

    Raises:
        OSError: It cannot be read.
        ValueError: It is not closed somewhere.
    """
    return parse(read_bytes(root, path).decode("utf-8", "surrogateescape"))


class _Reader:
    def __init__(self, text: str, config: GrubCfg) -> None:
        self._text = text
        self._tokens = tokens(text)
        self._position = 0
        self._config = config
        self._conditions: List[Condition] = []

    def read(self) -> None:
        self._menu(self._config.entries, len(self._tokens))

    def _menu(self, entries: List[MenuEntry], end: int) -> None:
        while self._position < end:
            command = self._command(end)
            words = tuple(token.text for token in command)
            if not words:
                continue
            if words[0] in ("menuentry", "submenu"):
                entries.append(self._entry(words))
            elif words[0] == "function":
                self._block()
            else:
                self._plain(words)

    def _command(self, end: int) -> List[Token]:
        """Words up to a separator or brace, which is stepped over unless it opens a block."""
        found: List[Token] = []
        while self._position < end:
            token = self._tokens[self._position]
            if token.text == "{" and found and found[0].text in ("menuentry", "submenu", "function"):
                return found
            self._position += 1
            if token.separates or token.text in ("{", "}"):
                if found:
                    return found
                continue
            found.append(token)
            # Words after these are a command of their own.
            if len(found) == 1 and token.text in ("then", "else", "do", "fi", "done"):
                return found
        return found

    def _block(self) -> Tuple[int, int]:
        """Positions of the tokens inside the braces that come next; goes on after them."""
        if self._position >= len(self._tokens) or self._tokens[self._position].text != "{":
            raise ValueError("grub.cfg has an entry or function without a body")
        start = self._position + 1
        depth = 0
        for position in range(self._position, len(self._tokens)):
            depth += {"{": 1, "}": -1}.get(self._tokens[position].text, 0)
            if depth == 0:
                self._position = position + 1
                return start, position
        raise ValueError("grub.cfg ends inside an entry or function")

    def _entry(self, words: Tuple[str, ...]) -> MenuEntry:
        first, last = self._block()
        header = words[1:]
        title = _title(header)
        children: List[MenuEntry] = []
        if words[0] == "submenu":
            after, self._position = self._position, first
            outer, self._conditions = self._conditions, []
            inner = GrubCfg()
            config, self._config = self._config, inner
            self._menu(children, last)
            self._position, self._conditions, self._config = after, outer, config
        body = self._text[self._tokens[first - 1].end : self._tokens[last].start]
        return MenuEntry(
            header=header,
            title=title,
            id=_id(header) or title,
            body=body if words[0] == "menuentry" else "",
            children=tuple(children),
            conditional=bool(self._conditions),
        )

    def _plain(self, words: Tuple[str, ...]) -> None:
        if words[0] in ("if", "while", "for", "until"):
            self._conditions.append(words[1:])
        elif words[0] in ("fi", "done"):
            if self._conditions:
                self._conditions.pop()
        elif words[0] == "elif":
            if self._conditions:
                self._conditions[-1] = words[1:]
        elif words[0] not in ("then", "else", "do"):
            self._config.commands.append((words, tuple(self._conditions)))


def _title(header: Tuple[str, ...]) -> str:
    words = iter(header)
    for word in words:
        if word in _OPTIONS_WITH_VALUE:
            next(words, None)
        elif not word.startswith("--"):
            return _text(word)
    raise ValueError("grub.cfg has an entry without a title")


def _id(header: Tuple[str, ...]) -> str:
    words = iter(header)
    for word in words:
        if word in _ID_OPTIONS:
            return _text(next(words, ""))
    return next((_text(word[len("--id=") :]) for word in header if word.startswith("--id=")), "")


def _text(word: str) -> str:
    try:
        return " ".join(expand(word, {}))
    except ValueError:
        # A title with a variable in it is never the one that a default names.
        return word


def _assignment(words: Tuple[str, ...]) -> Tuple[str, str, str]:
    written = words[1] if words[0] == "set" and len(words) > 1 else words[0]
    name, equals, value = written.partition("=")
    return (name, equals, value) if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) else ("", "", "")


def _cannot_hold(conditions: Tuple[Condition, ...], known: Mapping[str, str]) -> bool:
    """Whether a condition wants a variable that is not set, as Fedora's count of failed boots does."""
    for condition in conditions:
        wanted = re.fullmatch(r'"\$\{(\w+)\}"', condition[2]) if condition[:2] == ("[", "-n") else None
        if wanted and "-o" not in condition and not known.get(wanted.group(1)):
            return True
    return False


def _renamed_title(conditions: Tuple[Condition, ...]) -> Optional[str]:
    """The old title in `if [ "x$default" = 'OLD' ]`, with which 10_linux corrects old settings."""
    if not conditions or conditions[-1][:3] != ("[", '"x$default"', "="):
        return None
    return " ".join(expand(conditions[-1][3], {}))


def _choose(entries: Sequence[MenuEntry], name: str) -> MenuEntry:
    if not entries:
        raise ValueError("the boot menu has no entries")
    first, rest = _split_path(name)
    index = _index(entries, first)
    chosen = entries[index]
    if chosen.conditional:
        raise ValueError(f"the default boot entry {chosen.title!r} is only there under a condition")
    return _choose(chosen.children, rest) if chosen.children else chosen


def _index(entries: Sequence[MenuEntry], name: str) -> int:
    number = re.match(r"\d+", name)
    if number:
        index = int(number.group())
        if index >= len(entries):
            return 0
        if any(entry.conditional for entry in entries[:index]):
            raise ValueError(
                f"which boot entry is number {index} depends on a condition that only GRUB knows"
            )
        return index
    # GRUB takes the first entry when no title or id is that of the default.
    matches = (place for place, entry in enumerate(entries) if name and name in (entry.title, entry.id))
    return next(matches, 0)


def _split_path(name: str) -> Tuple[str, str]:
    """The first step of "submenu>entry"; ">>" stands for ">" in a title."""
    parts = re.split(r"(?<!>)>(?!>)", name, maxsplit=1)
    return parts[0].replace(">>", ">"), parts[1] if len(parts) > 1 else ""


def _linux_commands(body: str) -> List[Tuple[Token, ...]]:
    return [command for command in _body_commands(body) if _LINUX.match(command[0].text)]


def _body_commands(body: str) -> List[Tuple[Token, ...]]:
    """Commands of a body, each from its name on, also one that follows `then` or `else` in its line."""
    found = []
    for command in commands(tokens(body)):
        start = next((n for n, token in enumerate(command) if token.text not in ("then", "else", "do")), None)
        if start is not None:
            found.append(command[start:])
    return found


def _with_arguments(body: str, arguments: Sequence[str]) -> str:
    """A body with other arguments for its kernel, and without what leaves traces for the next boot."""
    changes: List[Tuple[int, int, str]] = []
    written = " ".join(quote(argument) for argument in arguments)
    for command in _body_commands(body):
        if command[0].text in _LEAVES_TRACES:
            # Something must stand there: GRUB takes an empty `then` for an error.
            changes.append((command[0].start, command[-1].end, "set nodeprep_trial=1"))
        elif _LINUX.match(command[0].text):
            changes.append((command[1].end, command[-1].end, f" {written}"))
    for start, end, text in reversed(changes):
        body = body[:start] + text + body[end:]
    return body
