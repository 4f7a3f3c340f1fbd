"""Invented sessions for tests of fidelity: as rows, told in few words or drawn by Hypothesis."""

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from cutbank.domain.fidelity.fidelity_measure import FidelityMeasure
from cutbank.domain.fidelity.later_references import RowBoundary
from cutbank.domain.fidelity.rows import FidelityRow, RowKind, Scores, SessionRows, ViewSegment
from cutbank.domain.fidelity.session_reading import SessionReading
from cutbank.domain.ranges import Ranges

Cut = tuple[SessionReading, tuple[RowBoundary, ...]]
"""A session and its boundaries."""


class Talk:
    """A session that is told row by row; what an agent says is a call of its model."""

    def __init__(self, *, roots: Sequence[str] = ()) -> None:
        self.rows: list[FidelityRow] = []
        self.calls = 0
        self._roots = tuple(roots)

    def system(self, text: str) -> "Talk":
        return self._add(RowKind.SYSTEM, text)

    def user(self, text: str) -> "Talk":
        return self._add(RowKind.USER, text)

    def attached(self, text: str) -> "Talk":
        return self._add(RowKind.ATTACHMENT, text)

    def says(self, text: str, *, more: bool = False) -> "Talk":
        """The agent's words; `more` goes on with the answer before."""
        return self._written(RowKind.ASSISTANT, text, more=more)

    def thinks(self, text: str, *, more: bool = False) -> "Talk":
        return self._written(RowKind.THINKING, text, more=more)

    def calls_tool(
        self, tool: str, *values: str, more: bool = False, id: str | None = None
    ) -> "Talk":
        text = "\n".join((tool, *values))
        name = id or f"c{len(self.rows) + 1}"
        return self._written(RowKind.TOOL_CALL, text, more=more, tool=tool, call_id=name)

    def returns(self, text: str, *, id: str | None = None) -> "Talk":
        """The answer to the newest call of a tool."""
        calls = (row.call_id for row in reversed(self.rows) if row.kind is RowKind.TOOL_CALL)
        return self._add(RowKind.TOOL_RESULT, text, call_id=id or next(calls))

    def read(self) -> SessionReading:
        return SessionReading(SessionRows("invented", self.rows, self.calls, self._roots))

    def _written(self, said: RowKind, text: str, *, more: bool, **fields: Any) -> "Talk":
        self.calls += not more
        self.rows.append(FidelityRow(len(self.rows) + 1, said, text, self.calls, **fields))
        return self

    def _add(self, said: RowKind, text: str, **fields: Any) -> "Talk":
        self.rows.append(FidelityRow(len(self.rows) + 1, said, text, self.calls + 1, **fields))
        return self


def dropping(
    reading: SessionReading, boundaries: Sequence[RowBoundary], summary: str = ""
) -> list[ViewSegment]:
    """What hides all that a boundary hides, and has the same summary for all of it."""
    system = [row.position for row in reading.rows.rows if row.kind is RowKind.SYSTEM]
    return [
        ViewSegment(
            call=boundary.call,
            after=boundary.first_kept - 1,
            kept=Ranges.of(at for at in system if at < boundary.first_kept),
            summary=summary,
        )
        for boundary in boundaries
    ]


_NAMES = """
    src/app.py app.py core/app.py tests/test_app.py README.md zone_of.py http://a.example/x
    load_rows m.load_rows Row::fromText zoneOf ValueError E0308 12ms abcdef12 #4711 90210 1.2.3
    --dry-run plain words
"""
NAMES = st.sampled_from(_NAMES.split())
TEXTS = st.lists(NAMES, max_size=4).map(" ".join)
STEPS = st.tuples(st.sampled_from(["user", "says", "thinks", "tool", "attached"]), TEXTS, TEXTS)


@st.composite
def talks(draw: st.DrawFn) -> Talk:
    """Sessions of which most name the same few things again and again."""
    talk = Talk().system(draw(TEXTS)).user(draw(TEXTS))
    for step, text, answer in draw(st.lists(STEPS, min_size=4, max_size=25)):
        match step:
            case "user":
                talk.user(text)
            case "attached":
                talk.attached(text)
            case "says":
                talk.says(text)
            case "thinks":
                talk.thinks(text).calls_tool("look", answer, more=True).returns(text)
            case _:
                talk.calls_tool("run", text).returns(answer)
    return talk


@st.composite
def cut_talks(draw: st.DrawFn) -> Cut:
    """Sessions with boundaries of which each hides more than the one before."""
    talk = draw(talks())
    talk.says("") if not talk.calls else None
    calls = sorted(draw(st.sets(st.integers(1, talk.calls), max_size=3)))
    boundaries: list[RowBoundary] = []
    for call in calls:
        seen = [row.position for row in talk.rows if row.call <= call]
        first = draw(st.sampled_from(seen))
        if not boundaries or first > boundaries[-1].first_kept:
            boundaries.append(RowBoundary(call, first))
    return talk.read(), tuple(boundaries)


def measure(talk: Talk, *boundaries: tuple[int, int]) -> FidelityMeasure:
    """Measured at boundaries, each a call and the first position that it keeps."""
    return FidelityMeasure(talk.read(), [RowBoundary(*boundary) for boundary in boundaries])


def score_summary(measure: FidelityMeasure, summary: str) -> Scores:
    """The scores of a view that has this summary for all that is hidden."""
    return measure.score(dropping(measure.reading, measure.boundaries, summary))
