"""The manual pages of the catalogue are what its data say."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodeprep.diagnose.pages import PAGES, main, render

FOLDER = Path(__file__).parents[2] / "docs" / "diagnose"


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_up_to_date(name: str) -> None:
    page = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
    assert page == render(name), "run: python -m nodeprep.diagnose.pages docs/diagnose"


def test_all_pages_are_written(tmp_path: Path) -> None:
    main(tmp_path)
    assert {page.stem for page in tmp_path.iterdir()} == set(PAGES)
    assert {page.stem for page in FOLDER.glob("*.md")} == {"README", *PAGES}
