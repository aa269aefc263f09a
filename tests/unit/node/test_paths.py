import pytest

from nodeprep.node.paths import canonical_root, exists, is_real, under


@pytest.mark.parametrize("spelling", ["/", "//", "/usr/..", "/proc/self/root"])
def test_every_spelling_of_the_machine_itself_is_real(spelling):
    assert canonical_root(spelling) == "/"
    assert is_real(spelling)


def test_any_other_folder_is_not(tmp_path):
    assert canonical_root(str(tmp_path / "x" / "..")) == str(tmp_path)
    assert not is_real(str(tmp_path))
    assert not is_real(str(tmp_path / "missing"))


def test_paths_stay_below_the_root():
    assert under("/srv/node", "/sys/class") == "/srv/node/sys/class"
    assert under("/", "/sys/class") == "/sys/class"


def test_what_is_there_and_what_is_not(tmp_path):
    (tmp_path / "sys").mkdir()
    (tmp_path / "sys/dangling").symlink_to("nowhere")
    assert exists(str(tmp_path), "/sys")
    assert not exists(str(tmp_path), "/sys/missing")
    assert not exists(str(tmp_path), "/sys/dangling")


def test_a_folder_that_may_not_be_entered_is_not_an_absence(tmp_path, monkeypatch):
    def refused(path):
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr("nodeprep.node.paths.os.stat", refused)
    with pytest.raises(PermissionError):
        exists(str(tmp_path), "/sys/x")
