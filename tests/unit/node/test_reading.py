import pytest

from nodeprep.node.reading import NotSupported, attempt, describe, error, not_supported, ok, part


def raising(problem):
    def reader():
        raise problem

    return reader


def test_a_value_is_ok_and_none_is_not_a_value():
    assert attempt(lambda: 0) == {"state": "ok", "value": 0}
    assert attempt(lambda: None)["state"] == "error"
    with pytest.raises(ValueError, match="not ok"):
        ok(None)


def test_what_the_machine_does_not_have_is_not_an_error():
    assert attempt(raising(NotSupported("no such register"))) == not_supported("no such register")


def test_a_refused_permission_says_needs_root():
    reading = attempt(raising(PermissionError(13, "Permission denied", "/sys/firmware/dmi/tables/DMI")))
    assert reading == error("needs root: /sys/firmware/dmi/tables/DMI")


def test_other_os_errors_keep_their_words_and_path():
    assert describe(OSError(5, "Input/output error", "/sys/x")) == "/sys/x: Input/output error"


def test_what_nobody_foresaw_becomes_an_error_with_its_type():
    assert attempt(raising(ZeroDivisionError("boom"))) == error("unexpected ZeroDivisionError: boom")


def test_a_part_that_fails_as_a_whole_has_an_error_in_every_field():
    assert part(("a", "b"), raising(OSError("gone"))) == {"a": error("gone"), "b": error("gone")}
    assert part(("a",), lambda: {"a": ok(1)}) == {"a": ok(1)}
