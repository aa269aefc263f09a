"""The folder of formats: discovery, writing, and the JSON document."""

from __future__ import annotations

import json

import pytest
from fixture_run import run_view

from nodeprep.errors import UsageError
from nodeprep.model.codec import decode
from nodeprep.model.run import RunView
from nodeprep.reports import all_reports, write_report


def test_formats_are_found():
    assert {"html", "json"} <= set(all_reports())


def test_json_is_the_whole_run_and_names_its_schema():
    view = run_view(gpus=2)
    data = all_reports()["json"].render(view)
    assert json.loads(data)["schema"] == "nodeprep.run_report/1"
    assert decode(data, RunView, source="report.json") == view


@pytest.mark.parametrize("format_", ["html", "json"])
def test_the_same_run_gives_the_same_bytes(format_):
    render = all_reports()[format_].render
    assert render(run_view(gpus=2)) == render(run_view(gpus=2))


def test_a_report_is_written_whole_and_leaves_nothing_beside_it(tmp_path):
    folder = tmp_path / "new" / "run"
    file = write_report(run_view(gpus=2), "html", folder)
    assert file == folder / "report.html"
    assert file.read_bytes().endswith(b"</html>")
    assert [path.name for path in folder.iterdir()] == ["report.html"]


def test_an_unknown_format_names_those_there_are(tmp_path):
    with pytest.raises(UsageError, match="no report format 'pdf'") as error:
        write_report(run_view(gpus=1), "pdf", tmp_path)
    assert "html, json" in error.value.hint


def test_a_folder_that_cannot_be_is_a_usage_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be written"):
        write_report(run_view(gpus=1), "json", tmp_path / "file")
