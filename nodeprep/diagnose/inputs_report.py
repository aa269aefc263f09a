"""What is said of each input: its format, its span of time, what it lacks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from nodeprep.diagnose.line import Line
from nodeprep.diagnose.reader import RawLine, Remark
from nodeprep.diagnose.readers._log import NO_START
from nodeprep.diagnose.sections import Section
from nodeprep.model.diagnosis import DiagnosisInput

MAX_TITLE = 60
FEW_SECTIONS = 12
"""Of a file with more sections, those of no known format are not listed one by one."""
BUG_REPORT = "nvidia_bug_report"
_END = "End of NVIDIA bug report log file"


@dataclass(slots=True)
class SectionReport:
    """Of the lines of one format under one name.

    Attributes:
        title: What the input calls it.
        name: The title, or else the format.
    """

    name: str
    title: str
    format: str
    lines: int = 0
    first: datetime | None = None
    last: datetime | None = None
    simulated: bool = False
    gaps: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    _last_number: int = 0

    def counted(self, lines: Iterator[RawLine]) -> Iterator[RawLine]:
        """The same lines; the unwanted ones between them count as well."""
        begun = False
        for line in lines:
            self.lines += 1 if not begun else line.number - self._last_number
            begun = True
            self._last_number = line.number
            yield line

    def saw(self, line: Line) -> None:
        """Takes note of a line's time."""
        if line.time is not None:
            self.first = line.time if self.first is None else min(self.first, line.time)
            self.last = line.time if self.last is None else max(self.last, line.time)

    def remark(self, remark: Remark) -> None:
        """Takes what the reader says; what it says again is said once."""
        if remark.gap and remark.gap not in self.gaps:
            self.gaps.append(remark.gap)
        if remark.note and remark.note not in self.notes:
            self.notes.append(remark.note)
        self.simulated = self.simulated or remark.simulated


@dataclass(slots=True)
class FileReport:
    """Of one input.

    Attributes:
        continued: As `Input.continued`.
    """

    name: str
    continued: bool = False
    lines: int = 0
    gaps: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    sections: list[SectionReport] = field(default_factory=list)

    def section(self, section: Section) -> SectionReport:
        """The entry of a section; sections of one format under one title share theirs."""
        title = section.title[:MAX_TITLE]
        for known in self.sections:
            if (known.title, known.format) == (title, section.reader.id):
                return known
        taken = {known.name for known in self.sections}
        name = title or section.reader.id
        if name in taken:
            name = f"{name} ({section.reader.id})"
        made = SectionReport(name=name, title=title, format=section.reader.id)
        self.sections.append(made)
        return made

    def close(self) -> None:
        """Looks at how the file ended."""
        began = any(each.format == BUG_REPORT for each in self.sections)
        if began and not any(each.title.startswith(_END) for each in self.sections):
            self.gaps.append("the bug report is cut off: its last line is missing")
        if self.continued:
            self.notes.append("only what came after the earlier diagnosis")
            for section in self.sections:
                section.gaps = [gap for gap in section.gaps if not gap.startswith(NO_START)]


def report(files: Sequence[FileReport]) -> tuple[DiagnosisInput, ...]:
    """The `inputs` of the diagnosis: one entry a file, and one for each of its sections if it has several."""
    return tuple(entry for file in files for entry in _entries(file))


def _entries(file: FileReport) -> Iterator[DiagnosisInput]:
    if not file.sections and not file.gaps and not file.continued:
        file.gaps.append("it is empty")
    unread = "empty" if file.continued and not file.gaps else "unread"
    formats = list(dict.fromkeys(each.format for each in file.sections)) or [unread]
    if len(formats) == 1:
        yield _entry(file, formats[0], file.sections)
        return
    form = BUG_REPORT if BUG_REPORT in formats else "mixed"
    whole = _entry(file, form, file.sections)
    own = [f"{each.name}: {gap}" for each in file.sections for gap in each.gaps]
    yield replace(whole, gaps=tuple(dict.fromkeys([*file.gaps, *own])), notes=tuple(file.notes))
    few = len(file.sections) <= FEW_SECTIONS
    for each in file.sections:
        if few or each.format != "plain" or each.gaps:
            name = f"{file.name}#{each.name}"
            yield _entry(FileReport(name=name, lines=each.lines), each.format, [each])


def _entry(file: FileReport, form: str, sections: Sequence[SectionReport]) -> DiagnosisInput:
    firsts = [each.first for each in sections if each.first]
    lasts = [each.last for each in sections if each.last]
    return DiagnosisInput(
        source=file.name,
        format=form,
        lines=file.lines,
        first=_text(min(firsts, default=None)),
        last=_text(max(lasts, default=None)),
        gaps=tuple(dict.fromkeys([*file.gaps, *(gap for each in sections for gap in each.gaps)])),
        notes=tuple(dict.fromkeys([*file.notes, *(note for each in sections for note in each.notes)])),
    )


def _text(time: datetime | None) -> str:
    return "" if time is None else time.isoformat()
