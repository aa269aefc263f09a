"""GRUB's script language, as far as grub.cfg files of distributions use it: tokens, words, commands.

Source: grub-core/script/yylex.l (tokens), grub-core/script/execute.c (expansion) and
grub-core/lib/cmdline.c (what the kernel is given) of GRUB.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Iterator, List, Mapping, Tuple

_SEPARATORS = ";\n|&"
_BRACES = "{}"
_ENDS_WORD = _SEPARATORS + _BRACES + "<> \t"
_VARIABLE = re.compile(r"\$(?:\{([^}]*)\}|([A-Za-z_][A-Za-z0-9_]*|[0-9?@*#]))")
_NEEDS_NO_QUOTES = re.compile(r"[A-Za-z0-9_.,:=/@%+^~!?()\[\]*-]+")

# Ubuntu's splash screen, and what SUSE sets only for the boot of a snapshot.
_EMPTY = frozenset({"vt_handoff", "extra_cmdline"})


@dataclass(frozen=True)
class Token:
    """A word as it is written, or one of ; newline | & { } < >.

    Attributes:
        text: With quotes.
        start: Where it begins in the text.
        end: Where it ends.
    """

    text: str
    start: int
    end: int

    @property
    def separates(self) -> bool:
        """Whether a command ends here."""
        return self.text in tuple(_SEPARATORS)


def tokens(text: str) -> List[Token]:
    """All tokens of a script, without comments.

    Raises:
        ValueError: A quote is not closed.
    """
    return list(_tokens(text))


def _tokens(text: str) -> Iterator[Token]:
    position = 0
    while position < len(text):
        character = text[position]
        if character in " \t":
            position += 1
        elif text.startswith("\\\n", position):
            position += 2
        elif character == "#":
            end = text.find("\n", position)
            position = len(text) if end < 0 else end
        elif character in _ENDS_WORD:
            yield Token(character, position, position + 1)
            position += 1
        else:
            end = _word_end(text, position)
            yield Token(text[position:end], position, end)
            position = end


def _word_end(text: str, start: int) -> int:
    position = start
    while position < len(text) and text[position] not in _ENDS_WORD:
        position = _part_end(text, position)
    return position


def _part_end(text: str, position: int) -> int:
    """End of one character, escape, quotation or variable of a word."""
    character = text[position]
    if character == "\\":
        return min(position + 2, len(text))
    if text.startswith("${", position):
        return _after(text, "}", position)
    if character == "'":
        return _after(text, "'", position + 1)
    if character != '"':
        return position + 1
    position += 1
    while position < len(text) and text[position] != '"':
        position += 2 if text[position] == "\\" else 1
    return _after(text, '"', position)


def _after(text: str, closing: str, position: int) -> int:
    end = text.find(closing, position)
    if end < 0:
        line = text.count("\n", 0, position) + 1
        raise ValueError(f"a quotation or variable that begins in line {line} is not closed")
    return end + 1


def expand(word: str, variables: Mapping[str, str]) -> List[str]:
    """The words that GRUB makes of one written word; several when a variable holds spaces.

    Raises:
        ValueError: A variable is not known.
    """
    found: List[str] = []
    current, any_part, position = "", False, 0
    while position < len(word):
        end = _part_end(word, position)
        part = word[position:end]
        if part[0] == "$":
            match = _VARIABLE.match(word, position)
            end = match.end() if match else end
            pieces = _value(match, variables).split() if match else ["$"]
            if pieces:
                found.extend([current + pieces[0], *pieces[1:]])
                current, any_part = found.pop(), True
        elif part[0] == "'":
            current, any_part = current + part[1:-1], True
        elif part[0] == '"':
            current, any_part = current + _inside_quotes(part[1:-1], variables), True
        else:
            # A backslash before the end of a line takes both away.
            plain = part[1:].strip("\n") if part[0] == "\\" else part
            current, any_part = current + plain, any_part or bool(plain)
        position = end
    return [*found, current] if any_part else found


def _inside_quotes(text: str, variables: Mapping[str, str]) -> str:
    result, position = "", 0
    while position < len(text):
        match = _VARIABLE.match(text, position)
        if match:
            result += _value(match, variables)
            position = match.end()
        elif text[position] == "\\" and text[position + 1 : position + 2] in tuple('\\"$'):
            result += text[position + 1]
            position += 2
        else:
            result += text[position]
            position += 1
    return result


def _value(match: re.Match[str], variables: Mapping[str, str]) -> str:
    name = match.group(1) or match.group(2)
    if name in variables:
        return variables[name]
    if name in _EMPTY:
        return ""
    raise ValueError(f"the value of GRUB's variable {name} is not known")


def kernel_words(arguments: List[str]) -> str:
    """The command line that GRUB's linux command makes of its arguments."""
    return " ".join(_kernel_word(argument) for argument in arguments)


def _kernel_word(argument: str) -> str:
    escaped = re.sub(r"(\\(?!x[0-9a-fA-F]{2})|['\"])", r"\\\1", argument)
    return f'"{escaped}"' if " " in argument else escaped


def quote(argument: str) -> str:
    """An argument as one word of a script."""
    if _NEEDS_NO_QUOTES.fullmatch(argument):
        return argument
    return "'" + argument.replace("'", "'\\''") + "'"


def commands(found: List[Token]) -> Iterator[Tuple[Token, ...]]:
    """Words between separators and braces, each group one command."""
    command: List[Token] = []
    for token in found:
        if token.separates or token.text in tuple(_BRACES):
            if command:
                yield tuple(command)
            command = []
        else:
            command.append(token)
    if command:
        yield tuple(command)
