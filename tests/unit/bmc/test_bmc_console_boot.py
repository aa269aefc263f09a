"""The console of one boot, told apart from the boots before and after it."""

from __future__ import annotations

from pathlib import Path

from nodeprep.bmc import ConsoleLog
from nodeprep.bmc.console import MOST_BYTES

WORD = "nodeprep.trial=a1"


def boot(arguments: str, *said: str) -> str:
    first = f"[    0.000000] Linux version 6.1.0\n[    0.000000] Command line: ro {arguments}\n"
    return first + "".join(f"{line}\n" for line in said)


def of_boot(tmp_path: Path, *texts: str) -> tuple[str, str]:
    log = ConsoleLog(tmp_path / "console.log")
    log.path.write_text("long ago\n")
    mark = log.mark()
    log.path.write_text("long ago\n" + "".join(texts))
    news = log.of_boot(mark, WORD)
    return news.text, news.note


def test_only_that_boot(tmp_path: Path) -> None:
    text, note = of_boot(
        tmp_path, "shutting down\n", boot(WORD, "panic!"), " GNU GRUB  version 2\n", boot("quiet")
    )
    assert text == f"[    0.000000] Command line: ro {WORD}\npanic!"
    assert note == ""


def test_another_trial_is_another_boot(tmp_path: Path) -> None:
    text, _ = of_boot(tmp_path, boot(WORD + "b", "wrong"), boot(WORD, "right"))
    assert "right" in text
    assert "wrong" not in text


def test_the_end_of_a_long_boot_although_a_longer_one_followed(tmp_path: Path) -> None:
    chatter = [f"line {number:05}" for number in range(5000)]
    text, _ = of_boot(tmp_path, boot(WORD, *chatter, "panic!"), boot("quiet", *chatter, *chatter))
    assert text.splitlines()[-2:] == ["line 04999", "panic!"]
    assert len(text) <= MOST_BYTES
    assert text.splitlines()[0].startswith("line ")


def test_a_quiet_kernel_leaves_the_end_of_all_and_a_note(tmp_path: Path) -> None:
    text, note = of_boot(tmp_path, "something\n")
    assert text == "something"
    assert note == f"no kernel said that it was given {WORD}: this may be another boot"
    assert of_boot(tmp_path, "") == ("", "")
