"""Which entry GRUB would take, and with which arguments, from grub.cfg alone."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from nodeprep.node.boot_loaders import _grub_cfg, find
from nodeprep.node.boot_loaders._grub_script import expand, kernel_words, quote, tokens

CASES = Path(__file__).parents[3] / "cases" / "boot_loaders"

MENU = """\
if [ "${next_entry}" ] ; then
   set default="${next_entry}"
   set next_entry=
   save_env next_entry
else
   set default="DEFAULT"
fi
function savedefault { saved_entry="${chosen}"; save_env saved_entry; }
menuentry 'One' --class os $menuentry_id_option 'one' { # comment with } in it
	linux /vmlinuz-1 root=a
}
submenu "More > of it" --id more {
	menuentry 'Two' --id=two { linux /vmlinuz-2 root=b; initrd /i; }
	submenu 'Deeper' {
		menuentry "It's three" { linux16 /vmlinuz-3 ; }
	}
	menuentry 4th { linux /vmlinuz-4 'x=}{' }
}
if [ "$grub_platform" = "efi" ]; then
	menuentry 'Firmware' --id fw { fwsetup }
fi
menuentry 'Last' { linux /vmlinuz-5 }
"""


def chosen(default: str, environment: dict[str, str] | None = None, text: str = MENU) -> str:
    return _grub_cfg.parse(text.replace("DEFAULT", default)).default(environment or {}).title


@pytest.mark.parametrize(
    ("default", "title"),
    [
        ("0", "One"),
        ("", "One"),
        ("one", "One"),
        ("nobody", "One"),
        ("99", "One"),
        ("1", "Two"),
        ("1>1", "It's three"),
        ("1>1>0", "It's three"),
        ("1>2", "4th"),
        ("more>two", "Two"),
        ("More >> of it>Two", "Two"),
        ("more>4th", "Two"),
        ("Last", "Last"),
        # A name that begins with a digit is a number to GRUB, and there is no entry 4.
        ("4th", "One"),
    ],
)
def test_the_default_is_found_as_grub_finds_it(default: str, title: str) -> None:
    assert chosen(default) == title


def test_a_saved_entry_is_taken_from_the_environment() -> None:
    assert chosen("${saved_entry}", {"saved_entry": "more>two"}) == "Two"
    assert chosen("${saved_entry}", {"saved_entry": "Last", "prev_saved_entry": "one"}) == "One"
    assert chosen("${saved_entry}") == "One"


def test_a_one_shot_choice_is_not_the_default() -> None:
    assert chosen("more>two", {"next_entry": "Last"}) == "Two"


@pytest.mark.parametrize(
    ("default", "words"),
    [
        ("3", "depends on a condition"),
        ("2", "only there under a condition"),
        ("fw", "only there under a condition"),
        ("${elsewhere}", "variable elsewhere is not known"),
    ],
)
def test_what_only_grub_knows_is_an_error(default: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        chosen(default)


def test_a_default_that_a_button_changes_is_an_error() -> None:
    text = MENU.replace("else\n", 'elif cmostest 80 ; then\n   set default="1"\nelse\n', 1)
    with pytest.raises(ValueError, match="under a condition"):
        chosen("0", text=text)
    assert chosen("1", text=text) == "Two"


def test_an_old_title_is_corrected_as_10_linux_has_it() -> None:
    text = MENU + "if [ \"x$default\" = 'Two' ]; then default='more>two'; fi;\n"
    assert chosen("Two", text=text) == "Two"
    assert chosen("one", text=text) == "One"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("chainloader /x.efi", "starts no Linux kernel"),
        ("multiboot2 /xen\nmodule2 /vmlinuz a", "starts no Linux kernel"),
        ("linux /a x\nlinux /b y", "more than one linux command"),
        ("linux", "names no kernel"),
        ("linux /a ${what}", "variable what is not known"),
    ],
)
def test_an_entry_whose_kernel_is_not_clear_is_an_error(body: str, words: str) -> None:
    (entry,) = _grub_cfg.parse(f"menuentry x {{\n{body}\n}}\n").entries
    with pytest.raises(ValueError, match=words):
        entry.kernel({})


@pytest.mark.parametrize(
    "text", ["menuentry x {", "menuentry 'x", "menuentry x\n", "menuentry --id x { }", 'echo "a']
)
def test_a_damaged_file_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"not closed|ends inside|without a body|without a title"):
        _grub_cfg.parse(text)


def test_an_empty_menu_is_an_error() -> None:
    with pytest.raises(ValueError, match="no entries"):
        _grub_cfg.parse('set default="0"').default({})


@pytest.mark.parametrize(
    ("written", "kernel"),
    [
        ("a=b quiet", "a=b quiet"),
        ("'a b' \"c d\"", '"a b" "c d"'),
        ('dyndbg="file x +p"', '"dyndbg=file x +p"'),
        (r"memmap=4G\$8G", "memmap=4G$8G"),
        ("a$known b", "aone two b"),
        ('"a$known"', '"aone two"'),
        ("$none x", "x"),
        ("x=${known}", "x=one two"),
        (r"a\ b", '"a b"'),
        ("it\\'s", r"it\'s"),
        (r'a="x\\y"', r"a=x\\y"),
        ("$vt_handoff end", "end"),
        ("a # comment", "a"),
        ("a\\\n b", "a b"),
    ],
)
def test_arguments_are_what_grub_gives_the_kernel(written: str, kernel: str) -> None:
    known = {"known": "one two", "none": ""}
    assert kernel_words([word for token in tokens(written) for word in expand(token.text, known)]) == kernel


@pytest.mark.parametrize("word", ["a", "a b", "it's", '"', "$x", "a;b", "{", "x=1,2:3@4/5", "#", "a\\b", ""])
def test_a_quoted_word_is_one_word(word: str) -> None:
    (token,) = tokens(quote(word))
    assert expand(token.text, {}) == [word]


def test_ubuntu_without_initrd_is_not_booted_twice() -> None:
    config = _grub_cfg.read(str(CASES / "ubuntu2204_cloud"), "/boot/grub/grub.cfg")
    entry = config.default({})
    copy = entry.copied("trial", "nodeprep-trial", ["root=x", "iommu=pt"])
    commands = [line.split()[0] for line in copy.splitlines() if line.split()]
    # initrdfail would have GRUB take the one-shot entry again, with an initrd.
    assert "initrdfail" not in commands
    assert "initrdfail" in entry.body.split()
    assert copy.count("root=x iommu=pt") == 2
    (read,) = _grub_cfg.parse(copy).entries
    assert (read.id, read.title, read.kernel({})) == (
        "nodeprep-trial",
        "trial",
        ("/boot/vmlinuz-5.15.0-105-generic", "root=x iommu=pt"),
    )


def test_a_failed_boot_without_initrd_is_an_obstacle(tmp_path: Path) -> None:
    shutil.copytree(CASES / "ubuntu2204_cloud", tmp_path, symlinks=True, dirs_exist_ok=True)
    env = tmp_path / "boot/grub/grubenv"
    text = env.read_bytes().replace(b"#" * 14, b"initrdfail=1\n#", 1)
    env.write_bytes(b"# GRUB Environment Block\ninitrdfail=1\n" + text[-100:])
    assert "the next one is not free" in find(str(tmp_path)).one_shot_obstacle()


@pytest.mark.skipif(not shutil.which("grub-script-check"), reason="grub-script-check is not installed")
@pytest.mark.parametrize("layout", ["debian12", "ubuntu2204_cloud", "sles15"])
def test_grub_understands_the_copy(tmp_path: Path, layout: str) -> None:
    folder = "grub2" if layout == "sles15" else "grub"
    text = (
        (CASES / layout / f"boot/{folder}/grub.cfg")
        .read_text()
        .replace("\tload_video", "\tif true; then savedefault; fi\n\tload_video")
    )
    for entry in _grub_cfg.parse(text).entries:
        if not entry.children and "linux" in entry.body:
            copy = tmp_path / "custom.cfg"
            copy.write_text(entry.copied("it's", "x", ["a=b c", "d"]))
            subprocess.run(["grub-script-check", copy], check=True)
            assert "savedefault" not in copy.read_text()
