"""Writes one self-contained page of a session: history, calls, boundaries and what was lost."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from string import Template

from ....runtime.exporting.new_file import new_file
from ....runtime.sessions.stored_session import StoredSession
from ....storage.private_files import open_new
from .boundaries import boundaries
from .calls import calls
from .chart import context_chart, fate_chart
from .cuts import Cuts, cuts_of
from .facts import facts, title
from .history import history
from .marks import marks
from .markup import Markup, joined, several, tag
from .story import Story, story_of

HERE = files(__name__.rpartition(".")[0])


@dataclass(frozen=True, slots=True)
class PageReport:
    """What became of a page."""

    path: Path
    size: int
    """Bytes."""
    left_out: tuple[str, ...]
    """What had no room, in words; nothing on a full page."""


def write_page(
    session: StoredSession,
    path: str | Path,
    *,
    lineage: str | None = None,
    is_full: bool = False,
) -> PageReport:
    """Write a new file that any browser shows, without a network.

    Fates are those of `lineage`, `main` unless said. What would make it too large to be sent is
    left out, and the page says so, unless it `is_full`. Raises ExportError where the file is there
    already or cannot be written, NotFoundError where there is no such lineage.
    """
    if lineage is not None:
        session.log.check_lineage(lineage)
    target = Path(path)
    with new_file(target) as beside:
        story = story_of(session, lineage)
        cuts = cuts_of(story, is_full=is_full)
        content = page_of(story, cuts).encode("utf-8")
        with open_new(beside) as file:
            file.write(content)
    return PageReport(target, len(content), cuts.left_out)


def page_of(story: Story, cuts: Cuts) -> str:
    """The page as text; nothing in it is fetched from anywhere."""
    session = story.session
    return Template(_asset("page.html")).substitute(
        title=joined([title(story), " - cutbank"]),
        style=_asset("page.css"),
        header=joined(_header(story, cuts), "\n"),
        charts=joined([context_chart(story), fate_chart(story)], "\n"),
        boundaries=_or(
            boundaries(story, cuts), "Nothing was compacted: the view is all of the log."
        ),
        calls=_or(calls(story, cuts), "The log tells of no call of a model."),
        history=_or(history(cuts, session.key), "The log holds no block."),
        marks=marks(story, cuts),
        script=_asset("page.js"),
    )


def _header(story: Story, cuts: Cuts) -> Iterator[Markup]:
    session, view = story.session, story.view
    at = view.coordinate
    yield tag("h1", title(story), dir="auto")
    source = f", imported from {session.log.source}" if session.log.source else ""
    yield tag(
        "p",
        f"Session {session.key} in {session.namespace}{source}: "
        f"{several(len(story.blocks), 'block', 'blocks')}, "
        f"{several(len(story.calls), 'call', 'calls')}, "
        f"{several(len(story.boundaries), 'compaction', 'compactions')}. "
        f"Fates as of {at.lineage}@{at.lineage_version}#{at.position}; "
        f"the view there takes {session.log.measure_use(view):,} tokens, fingerprint ",
        tag("code", view.fingerprint),
        ".",
    )
    rows = (part for row in facts(story) for part in row)
    yield tag("dl", *rows, class_="facts")
    yield tag(
        "p",
        "Tokens of a prompt are reported where its provider counted them, and estimated "
        "where none did. Of a "
        "call that is marked proved the database still gives the fingerprint that was recorded "
        "when it was sent. One that is marked reconstructed was not served by cutbank: what it was "
        "sent is told from the log.",
    )
    if cuts.left_out:
        yield tag(
            "p",
            tag("strong", "Left out to keep the page small: "),
            "; ".join(cuts.left_out),
            ". The option --full writes all of it.",
        )


def _or(parts: Iterable[Markup], otherwise: str) -> Markup:
    return joined(parts, "\n") or tag("p", otherwise)


def _asset(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")
