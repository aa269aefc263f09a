"""The shell file in /etc/default/grub.d that edits the kernel arguments whenever grub.cfg is generated.

It never assigns a value of its own over others': cloud images and providers assign
GRUB_CMDLINE_LINUX_DEFAULT in files of theirs, and a later kernel package generates grub.cfg anew.
What they leave in the two variables is edited each time: what must go is dropped, what is missing is
put last. Normal entries take both variables, recovery entries only GRUB_CMDLINE_LINUX, so words are
added to the other one only.
"""

from __future__ import annotations

import json
import re
from typing import Dict, List, Optional, Tuple

from .. import durable
from ..kernel_cmdline import Argument, Edit, parse_word, words
from ..paths import exists, list_folder
from ._boot_loader import Refusal
from ._grub_script import quote
from ._grub_trial import grub_arguments

FOLDER = "/etc/default/grub.d"

_OWN = re.compile(r"z{2,}-nodeprep\.cfg")
_EDIT = "# nodeprep edit: "
_LONGEST_NAME = 40

# A value that no argument has, to ask what holds for every value of a key.
_ANY = "nodeprep-any-value"

_TEXT = """\
# Kernel arguments set by nodeprep. Written and removed by nodeprep; do not edit.
# This file must be the last of its folder. It edits what the files before it have set.
{edit}

# An argument without quotes and backslashes, so that it can be compared.
nodeprep_plain() {{
    nodeprep_plain=
    nodeprep_left=$1
    while :; do
        case $nodeprep_left in
            *[\\"\\'\\\\]*) ;;
            *) break ;;
        esac
        nodeprep_plain=$nodeprep_plain${{nodeprep_left%%[\\"\\'\\\\]*}}
        nodeprep_left=${{nodeprep_left#*[\\"\\'\\\\]}}
    done
    nodeprep_plain=$nodeprep_plain$nodeprep_left
}}

# Whether no quotation stays open at the end of a text.
nodeprep_closed() {{
    nodeprep_left=$1
    while :; do
        case $nodeprep_left in
            *[\\"\\']*) nodeprep_left=${{nodeprep_left#"${{nodeprep_left%%[\\"\\']*}}"}} ;;
            *) return 0 ;;
        esac
        case $nodeprep_left in
            \\"*\\"*) nodeprep_left=${{nodeprep_left#?*\\"}} ;;
            \\'*\\'*) nodeprep_left=${{nodeprep_left#?*\\'}} ;;
            *) return 1 ;;
        esac
    done
}}

# Counts the wanted arguments.
nodeprep_count() {{
    case $1 in
{counts}
        *) ;;
    esac
}}

# Whether an argument does not stay where it is: it must go, or it is put last.
nodeprep_goes() {{
    case $1 in
{goes}
        *) return 1 ;;
    esac
}}

# Edits one word: nodeprep_word becomes what stays of it.
nodeprep_edit() {{
    nodeprep_plain "$nodeprep_word"
    case $nodeprep_plain in
        {lists})
            nodeprep_key=${{nodeprep_plain%%=*}}
            nodeprep_options=${{nodeprep_plain#*=}},
            nodeprep_stays=
            nodeprep_whole=1
            while [ -n "$nodeprep_options" ]; do
                nodeprep_option=${{nodeprep_options%%,*}}
                nodeprep_options=${{nodeprep_options#*,}}
                if [ -z "$nodeprep_option" ]; then
                    continue
                elif [ "$1" = count ]; then
                    nodeprep_count "$nodeprep_key=$nodeprep_option"
                elif nodeprep_goes "$nodeprep_key=$nodeprep_option"; then
                    nodeprep_whole=0
                else
                    nodeprep_stays="$nodeprep_stays,$nodeprep_option"
                fi
            done
            if [ "$nodeprep_whole" = 0 ]; then
                nodeprep_word=${{nodeprep_stays:+$nodeprep_key=${{nodeprep_stays#,}}}}
            fi
            ;;
        *)
            if [ "$1" = count ]; then
                nodeprep_count "$nodeprep_plain"
            elif nodeprep_goes "$nodeprep_plain"; then
                nodeprep_word=
            fi
            ;;
    esac
}}

# Walks through a line: $1 is count or edit, $2 the line, $3 what is added.
# The result is in nodeprep_line.
nodeprep_walk() {{
    nodeprep_rest=$2
    nodeprep_line=
    nodeprep_word=
    nodeprep_tail=
    while [ -n "$nodeprep_rest" ]; do
        nodeprep_piece=${{nodeprep_rest%%[[:space:]]*}}
        nodeprep_rest=${{nodeprep_rest#"$nodeprep_piece"}}
        nodeprep_word=$nodeprep_word$nodeprep_piece
        if [ -n "$nodeprep_rest" ] && ! nodeprep_closed "$nodeprep_word"; then
            # The space belongs to the word.
            nodeprep_word=$nodeprep_word${{nodeprep_rest%"${{nodeprep_rest#?}}"}}
            nodeprep_rest=${{nodeprep_rest#?}}
            continue
        fi
        # What follows "--" goes to init.
        if [ "$nodeprep_word" = -- ]; then
            nodeprep_tail=" --$nodeprep_rest"
            break
        fi
        if [ -n "$nodeprep_word" ]; then
            nodeprep_edit "$1"
        fi
        if [ -n "$nodeprep_word" ]; then
            nodeprep_line="$nodeprep_line $nodeprep_word"
        fi
        nodeprep_word=
        nodeprep_rest=${{nodeprep_rest#?}}
    done
    nodeprep_line="$nodeprep_line$3$nodeprep_tail"
    nodeprep_line=${{nodeprep_line# }}
}}

{zeroes}
nodeprep_walk count "${{GRUB_CMDLINE_LINUX-}}" ""
nodeprep_walk count "${{GRUB_CMDLINE_LINUX_DEFAULT-}}" ""
nodeprep_added=
{adds}
nodeprep_walk edit "${{GRUB_CMDLINE_LINUX-}}" ""
GRUB_CMDLINE_LINUX=$nodeprep_line
nodeprep_walk edit "${{GRUB_CMDLINE_LINUX_DEFAULT-}}" "$nodeprep_added"
GRUB_CMDLINE_LINUX_DEFAULT=$nodeprep_line
"""


def files(root: str) -> Dict[str, str]:
    """The files of nodeprep in the folder: path and text.

    Raises:
        OSError: One cannot be read.
    """
    if not exists(root, FOLDER):
        return {}
    paths = [f"{FOLDER}/{name}" for name in list_folder(root, FOLDER) if _OWN.fullmatch(name)]
    return {path: durable.content(root, path) or "" for path in paths}


def edit_in(found: Dict[str, str]) -> Optional[Edit]:
    """The edit that files make, None for no file.

    Raises:
        ValueError: A file is damaged.
    """
    edit: Optional[Edit] = None
    for path, text in found.items():
        lines = [line[len(_EDIT) :] for line in text.splitlines() if line.startswith(_EDIT)]
        try:
            one = Edit.from_dict(json.loads(lines[0]))
        except (IndexError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path} is damaged: remove it and run update-grub") from error
        edit = one if edit is None else together(edit, one)
    return edit


def together(old: Edit, new: Edit) -> Edit:
    """One edit that does what both do, the new one last."""
    asked = " ".join([*new.present, *new.replace])
    kept = new.apply(" ".join(old.present))
    return Edit(
        present=tuple(dict.fromkeys([*(w for w in words(kept) if w not in new.replace), *new.present])),
        absent=tuple(dict.fromkeys([*_still_absent(old, asked), *new.absent])),
        replace=tuple(dict.fromkeys([*_still_wanted(old, new), *new.replace])),
    )


def file_for(root: str, edit: Edit) -> Tuple[str, str]:
    """Path and text of the file that makes this edit.

    Raises:
        OSError: The folder cannot be read.
        Refusal: No name comes last in the folder, or GRUB cannot pass an argument on.
    """
    names = list_folder(root, FOLDER) if exists(root, FOLDER) else []
    others = [name for name in names if name.endswith(".cfg") and not _OWN.fullmatch(name)]
    return f"{FOLDER}/{_last_name(others)}", text_of(edit)


def text_of(edit: Edit) -> str:
    """The shell text that makes this edit.

    Raises:
        Refusal: GRUB cannot pass an argument on.
    """
    wanted = list(dict.fromkeys(_arguments([*edit.present, *edit.replace])))
    counts = [
        f"        {_pattern(each)}) nodeprep_{n}=$((nodeprep_{n} + 1)) ;;" for n, each in enumerate(wanted)
    ]
    goes = [f"        {_pattern(each)}) {_moves(each, n)} ;;" for n, each in enumerate(wanted)]
    goes += [f"        {pattern}) ;;" for pattern in _dropped(edit, wanted)]
    adds = [_add(each, n) for n, each in enumerate(wanted)]
    return _TEXT.format(
        edit=_EDIT + json.dumps(edit.to_dict(), sort_keys=True),
        counts="\n".join(counts) or "        '') ;;",
        goes="\n".join(goes) or "        '') ;;",
        lists="|".join(f"{_pattern(Argument(key, None))}=*" for key in _list_keys(edit)) or "''",
        zeroes="\n".join(f"nodeprep_{n}=0" for n in range(len(wanted))),
        adds="\n".join(adds),
    )


def _last_name(others: List[str]) -> str:
    for length in range(2, _LONGEST_NAME):
        name = "z" * length + "-nodeprep.cfg"
        if all(_sorts_before(other, name) for other in others):
            return name
    worst = max(others)
    raise Refusal(
        f"{FOLDER}/{worst} comes after every name that nodeprep can choose, and may undo its arguments",
        f"rename it: mv {FOLDER}/{worst} {FOLDER}/50-{worst}",
    )


def _sorts_before(other: str, name: str) -> bool:
    """In the C locale, and in locales that ignore case and punctuation."""
    plain = [re.sub(r"[^0-9a-z]", "", each.lower()) for each in (other, name)]
    return other < name and plain[0] < plain[1]


def _still_absent(old: Edit, asked: str) -> List[str]:
    return [word for word in old.absent if not Edit(absent=(word,)).removed_words(asked)]


def _still_wanted(old: Edit, new: Edit) -> List[str]:
    return [word for word in old.replace if word in words(new.apply(word))]


def _arguments(asked: List[str]) -> List[Argument]:
    return [argument for word in asked for argument in parse_word(word)]


def _moves(argument: Argument, number: int) -> str:
    """Whether it is put last: always where another value later in the line would win over it."""
    if Argument(argument.key, _ANY).overrides(argument):
        return ":"
    return f'[ "$nodeprep_{number}" != 1 ]'


def _add(argument: Argument, number: int) -> str:
    (written,) = grub_arguments(_quoted(str(argument)))
    add = f'nodeprep_added="$nodeprep_added "{_shell_quoted(quote(written))}'
    if _moves(argument, number) == ":":
        return add
    return f"if {_moves(argument, number)}; then {add}; fi"


def _quoted(word: str) -> str:
    return f'"{word}"' if re.search(r"\s", word) else word


def _dropped(edit: Edit, wanted: List[Argument]) -> List[str]:
    """Shell patterns of what must go, whatever its value is where that is meant."""
    found: List[str] = []
    for banned in _arguments(list(edit.absent)):
        found.append(_pattern(banned) if banned.value is not None else _every_value(banned.key))
    found += [_every_value(only.key) for only in _arguments(list(edit.replace))]
    for each in wanted:
        if Argument(each.key, _ANY).contradicts(each):
            found.append(_every_value(each.key))
        elif Argument(each.key, "off").contradicts(each):
            found.append(_pattern(Argument(each.key, "off")))
    return list(dict.fromkeys(found))


def _list_keys(edit: Edit) -> List[str]:
    """Keys whose value is a list of options."""
    named = _arguments([*edit.present, *edit.absent, *edit.replace])
    keys = dict.fromkeys(argument.key for argument in named)
    return [key for key in keys if len(parse_word(f"{key}=a,b")) == 2]


def _pattern(argument: Argument) -> str:
    """A shell pattern of one argument; "-" and "_" are the same in a name."""
    *parts, last = argument.key.split("_")
    value = "" if argument.value is None else f"={argument.value}"
    return "[-_]".join(_shell_quoted(part) for part in [*parts, last + value])


def _every_value(key: str) -> str:
    bare = _pattern(Argument(key, None))
    return f"{bare}|{bare}=*"


def _shell_quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'" if text else ""
