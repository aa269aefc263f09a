"""The run as one HTML page that needs nothing but itself.

Reports travel: on a USB stick, in a ticket, to a vendor. So everything is inlined, nothing is
fetched, and the page's own Content-Security-Policy forbids all network and every script but the two
it was made with, whatever a kernel log line or an asset tag may contain.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib import resources

import jinja2
import msgspec
from markupsafe import Markup

from nodeprep.model.run import RunView
from nodeprep.reports import _page
from nodeprep.reports._report import Report
from nodeprep.reports._text import moment, short_address

_PACKAGE = "nodeprep.reports"


def render(view: RunView) -> bytes:
    """The page, UTF-8."""
    styles = [_text("vendor/uPlot.min.css"), _text("assets/page.css")]
    library = f"/*\n{_text('vendor/uPlot.LICENSE')}*/\n{_text('vendor/uPlot.iife.min.js')}"
    scripts = [library, _text("assets/page.js")]
    page = _page.build(view)
    html = (
        _environment()
        .get_template("page.html.jinja")
        .render(
            page=page,
            policy=_policy(styles, scripts),
            styles=[Markup(text) for text in styles],  # noqa: S704  # the package's own files
            scripts=[Markup(text) for text in scripts],  # noqa: S704
            chart_data=_data_block(page.chart_data),
        )
    )
    return html.encode()


def _policy(styles: list[str], scripts: list[str]) -> str:
    """Nothing from anywhere; inline code only where its hash is known."""
    return "; ".join(
        (
            "default-src 'none'",
            f"style-src {_hashes(styles)}",
            f"script-src {_hashes(scripts)}",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def _hashes(texts: list[str]) -> str:
    digests = (hashlib.sha256(text.encode()).digest() for text in texts)
    return " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)


def _data_block(data: object) -> Markup:
    """JSON that cannot end its script element: every "<" inside a string is written as an escape."""
    return Markup(msgspec.json.encode(data).decode().replace("<", "\\u003c"))  # noqa: S704


@cache
def _text(name: str) -> str:
    return resources.files(_PACKAGE).joinpath(name).read_text(encoding="utf-8")


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: _text(f"assets/{name}")),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["short"] = short_address
    environment.filters["moment"] = moment
    return environment


REPORT = Report(
    id="html",
    title="one self-contained page with charts",
    file_name="report.html",
    render=render,
)
