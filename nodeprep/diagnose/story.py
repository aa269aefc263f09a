"""A diagnosis for people: of each incident what happened, why we think so, and what to do now."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from nodeprep.diagnose import catalog
from nodeprep.model.diagnosis import Diagnosis, EvidenceLine, Incident
from nodeprep.model.explanation import Explanation

_STYLES = {"critical": "bold red", "error": "red", "warning": "yellow", "info": "cyan"}
# A story is read; the whole evidence is in the JSON.
_QUOTED_HEAD = 5
_QUOTED_TAIL = 3
_MAX_QUOTE_CHARS = 300
_INDENT = (0, 0, 0, 4)


def _indented(text: Text) -> RenderableType:
    # Not widened to the screen: a pipe would get lines of spaces.
    return Padding(text, _INDENT, expand=False)


def story(found: Diagnosis) -> RenderableType:
    """The whole answer: incidents, the worst first, then what is missing from the input, then the verdict."""
    blocks: list[RenderableType] = []
    for incident in found.incidents:
        blocks += [_incident(incident), Text()]
    gaps = [(each.source, gap) for each in found.inputs for gap in each.gaps]
    if gaps:
        blocks.append(Text("Not everything could be read", style="bold"))
        blocks += [_indented(Text(f"{source}: {gap}")) for source, gap in gaps]
        blocks.append(Text())
    blocks.append(_verdict(found, bool(gaps)))
    return Group(*blocks)


def _incident(incident: Incident) -> RenderableType:
    head = Text()
    head.append(f"{incident.id} {incident.severity.upper()}", style=_STYLES[incident.severity])
    head.append(f" {incident.layer}", style="bold")
    if incident.host:
        head.append(f" {incident.host}")
    if incident.device:
        head.append(f" {incident.device}")
    if incident.count > 1:
        head.append(f" ({incident.count} times)")
    parts: list[RenderableType] = [head, _indented(Text(f"{_capital(incident.summary)}."))]
    if incident.why:
        parts += [Text("  Why", style="bold"), _indented(Text(incident.why))]
    parts += [_indented(_quote(line)) for line in _chosen(incident.evidence)]
    left_out = len(incident.evidence) - len(_chosen(incident.evidence))
    if left_out:
        parts.append(_indented(Text(f"... and {left_out} more lines; --json has them", style="dim")))
    parts.append(Text("  What to do", style="bold"))
    parts += [
        _indented(Text(f"{number}. {words}")) for number, words in enumerate(_steps(incident.actions), 1)
    ]
    return Group(*parts)


def _steps(actions: Sequence[str]) -> Iterator[str]:
    for name in actions:
        yield catalog.step(name)


def _chosen(evidence: Sequence[EvidenceLine]) -> Sequence[EvidenceLine]:
    if len(evidence) <= _QUOTED_HEAD + _QUOTED_TAIL:
        return evidence
    return (*evidence[:_QUOTED_HEAD], *evidence[-_QUOTED_TAIL:])


def _quote(line: EvidenceLine) -> Text:
    text = line.text.strip()
    quoted = text if len(text) <= _MAX_QUOTE_CHARS else f"{text[:_MAX_QUOTE_CHARS]}..."
    return Text.assemble((f"{line.source}:{line.line} ", "dim"), (quoted, "italic"))


def _verdict(found: Diagnosis, gaps: bool) -> Text:
    above = [incident for incident in found.incidents if incident.severity != "info"]
    lines = sum(each.lines for each in found.inputs if "#" not in each.source)
    files = len({each.source.split("#")[0] for each in found.inputs})
    read = f"{_plural(lines, 'line')} of {_plural(files, 'input')}"
    if above:
        worst = above[0]
        return Text(
            f"{_plural(len(above), 'incident')} in {read}; first: {catalog.step(worst.action)}.",
            style=_STYLES[worst.severity],
        )
    if gaps:
        return Text(f"No fault in {read}, but the input is incomplete: nothing is proved.", style="yellow")
    return Text(f"No fault in {read}.", style="green")


def explained(entry: Explanation) -> RenderableType:
    """What is known of one code."""
    head = Text(f"{entry.family} {entry.code}", style="bold")
    if entry.names:
        head.append(f"  {', '.join(entry.names)}", style="dim")
    parts: list[RenderableType] = [head, _indented(Text(f"{_capital(entry.meaning)}."))]
    if not entry.known:
        parts.append(_indented(Text("No published list says more, so nothing more is said here.")))
    about = [
        words
        for words in (
            entry.layer and f"layer {entry.layer}",
            entry.severity and f"severity {entry.severity} when seen alone",
            entry.since and f"since {entry.since}",
        )
        if words
    ]
    if about:
        parts.append(_indented(Text(f"{_capital(', '.join(about))}.")))
    if entry.advice:
        parts.append(_indented(Text(entry.advice)))
    if entry.beside:
        parts.append(_indented(Text(f"Goes with {', '.join(entry.beside)}.")))
    parts.append(Text("  What to do", style="bold"))
    parts += [_indented(Text(f"{number}. {step.words}")) for number, step in enumerate(entry.steps, 1)]
    parts += [_indented(Text(f"Source: {source}", style="dim")) for source in entry.sources]
    return Group(*parts)


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]


def _plural(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"
