"""From inputs to a diagnosis: read, decode, merge, judge."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache

from nodeprep.diagnose.correlate import incidents
from nodeprep.diagnose.decoder import Decoder
from nodeprep.diagnose.decoders import all_decoders
from nodeprep.diagnose.event import Event
from nodeprep.diagnose.fan_out import decode_all
from nodeprep.diagnose.folding import folded
from nodeprep.diagnose.inputs_bytes import ByteSource
from nodeprep.diagnose.inputs_dates import Calendar
from nodeprep.diagnose.inputs_gaps import add_gaps
from nodeprep.diagnose.inputs_input import Input
from nodeprep.diagnose.inputs_lines import LineSource
from nodeprep.diagnose.inputs_report import FileReport, SectionReport, report
from nodeprep.diagnose.line import Line
from nodeprep.diagnose.merge import merge
from nodeprep.diagnose.prefilter import Prefilter
from nodeprep.diagnose.reader import Item, Remark
from nodeprep.diagnose.readers import all_readers
from nodeprep.diagnose.sections import Section, sections
from nodeprep.diagnose.sections_boundaries import NEEDLES
from nodeprep.model.diagnosis import Diagnosis

Progress = Callable[[str, int, int | None], None]
"""Told now and then: name of an input, how many of its stored bytes were read, of how many."""


def diagnose(inputs: Sequence[Input], *, progress: Progress | None = None) -> Diagnosis:
    """Incidents of some inputs, which belong to one story."""
    events, files = read(inputs, progress=progress)
    add_gaps(files, silent=not events)
    told = report(files)
    found = incidents(events, told)
    simulated = any(section.simulated for file in files for section in file.sections)
    healthy = not any(each.gaps for each in told) and all(one.severity == "info" for one in found)
    return Diagnosis(healthy=healthy, inputs=told, incidents=found, simulated=simulated)


def read(
    inputs: Sequence[Input], *, progress: Progress | None = None
) -> tuple[tuple[Event, ...], list[FileReport]]:
    """All events of some inputs, each once, and what is to be said of each input."""
    calendar = Calendar.of(inputs)
    events: list[Event] = []
    files: list[FileReport] = []
    for each in inputs:
        reading = _FileReading(each, calendar, progress)
        events.extend(reading.events())
        files.append(reading.report)
    return merge(events), files


@dataclass(slots=True)
class _FileReading:
    """Reads one file."""

    input: Input
    calendar: Calendar
    progress: Progress | None
    report: FileReport = field(init=False)
    _date: datetime | None = None

    def __post_init__(self) -> None:
        self.report = FileReport(name=self.input.name, continued=self.input.continued)

    def events(self) -> Iterator[Event]:
        """All its events; afterwards `report` is complete."""
        if self.input.unreadable:
            self.report.gaps.append(f"not read: {self.input.unreadable}")
            return
        if self.input.gap:
            self.report.gaps.append(self.input.gap)
        data = ByteSource(self.input)

        def on_block() -> None:
            if self.progress:
                self.progress(self.input.name, data.done_bytes, self.input.size_bytes)

        source = LineSource(data, _prefilter(), on_block)
        for section in sections(source):
            yield from self._section(section)
        self.report.lines = source.lines
        self.report.close()
        self.report.gaps.extend(source.gaps)
        self.report.notes.extend(source.notes)

    def _section(self, section: Section) -> Iterator[Event]:
        told = self.report.section(section)
        name = f"{self.input.name}#{told.title}" if told.title else self.input.name
        direct: list[Event] = []
        items = section.reader.read(name, told.counted(section.lines))
        yield from folded(decode_all(self._lines(items, section, told, direct), _decoders()))
        yield from folded(direct)

    def _lines(
        self, items: Iterator[Item], section: Section, told: SectionReport, direct: list[Event]
    ) -> Iterator[Line]:
        """The lines among items, dated; events and remarks go where they belong."""
        for item in items:
            if isinstance(item, Line):
                line = self._stamped(self.calendar.dated(_of_host(item, section), self.input, told), section)
                told.saw(line)
                yield line
            elif isinstance(item, Remark):
                told.remark(item)
            else:
                lines = tuple(_of_host(line, section) for line in item.lines)
                direct.append(replace(item, lines=lines) if section.host else item)

    def _stamped(self, line: Line, section: Section) -> Line:
        """The line with the time that `date` printed earlier in the same transcript, if it has none."""
        if section.title.split(" ", 1)[0] == "date" and line.time is not None:
            self._date = line.time
        elif self._date is not None and line.time is None and line.uptime_s is None and not line.kernel:
            return replace(line, time=self._date)
        return line


def _of_host(line: Line, section: Section) -> Line:
    """The line with the host that its section is of, if it names none itself."""
    return replace(line, host=section.host) if section.host and not line.host else line


@cache
def _decoders() -> tuple[Decoder, ...]:
    return tuple(all_decoders().values())


def wanted_words() -> tuple[bytes, ...]:
    """The words one of which is in every line that is looked at in a long log."""
    return tuple(_prefilter().needles)


@cache
def _prefilter() -> Prefilter:
    wanted = [needle for decoder in _decoders() for needle in decoder.needles]
    wanted += [needle for reader in all_readers().values() for needle in reader.wants]
    return Prefilter([*wanted, *NEEDLES])
