"""Writes one self-contained page of a session: history, calls, boundaries and lost facts."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from string import Template

from ....runtime.exporting.new_file import open_new_path
from ....runtime.sessions.stored_session import StoredSession
from ....storage.private_files import open_new
from .boundaries import render_boundaries
from .calls import render_calls
from .chart import render_context_chart, render_status_chart
from .facts import find_title, render_facts
from .history import render_history
from .markup import Markup, format_plural, join_markup, make_tag
from .page_data import render_page_data
from .page_selection import PageSelection, select_content
from .page_story import PageStory, read_page_story

_ASSETS = files(__name__.rpartition(".")[0])


@dataclass(frozen=True, slots=True)
class PageReport:
    """The size of a page, and what it leaves out."""

    path: Path
    size: int
    """Bytes."""
    omissions: tuple[str, ...]


def write_page(
    session: StoredSession,
    path: str | Path,
    *,
    lineage: str | None = None,
    is_full: bool = False,
) -> PageReport:
    """Write a new file that any browser shows without a network.

    Block statuses are those of `lineage`, by default `main`. The page leaves out, and lists, what
    would make it too large, unless `is_full`. Raises ExportError if the file exists or cannot be
    written, NotFoundError if the lineage does not exist.
    """
    if lineage is not None:
        session.log.check_lineage(lineage)
    target = Path(path)
    with open_new_path(target) as beside:
        story = read_page_story(session, lineage)
        cuts = select_content(story, is_full=is_full)
        content = render_session_page(story, cuts).encode("utf-8")
        with open_new(beside) as file:
            file.write(content)
    return PageReport(target, len(content), cuts.omissions)


def render_session_page(story: PageStory, cuts: PageSelection) -> str:
    """Return the page as text; it loads nothing from elsewhere."""
    session = story.session
    return Template(_read_asset("page.html")).substitute(
        title=join_markup([find_title(story), " - cutbank"]),
        style=_read_asset("page.css"),
        header=join_markup(_render_header(story, cuts), "\n"),
        charts=join_markup([render_context_chart(story), render_status_chart(story)], "\n"),
        boundaries=_or_else(
            render_boundaries(story, cuts), "Nothing was compacted: the view is all of the log."
        ),
        calls=_or_else(render_calls(story, cuts), "The log tells of no call of a model."),
        history=_or_else(render_history(cuts, session.key), "The log holds no block."),
        marks=render_page_data(story, cuts),
        script=_read_asset("page.js"),
    )


def _render_header(story: PageStory, cuts: PageSelection) -> Iterator[Markup]:
    session, view = story.session, story.view
    at = view.coordinate
    yield make_tag("h1", find_title(story), dir="auto")
    source = f", imported from {session.log.source}" if session.log.source else ""
    yield make_tag(
        "p",
        f"Session {session.key} in {session.namespace}{source}: "
        f"{format_plural(len(story.blocks), 'block', 'blocks')}, "
        f"{format_plural(len(story.calls), 'call', 'calls')}, "
        f"{format_plural(len(story.boundaries), 'compaction', 'compactions')}. "
        f"Fates as of {at.lineage}@{at.lineage_version}#{at.position}; "
        f"the view there takes {session.log.measure_use(view):,} tokens, fingerprint ",
        make_tag("code", view.fingerprint),
        ".",
    )
    rows = (part for row in render_facts(story) for part in row)
    yield make_tag("dl", *rows, class_="facts")
    yield make_tag(
        "p",
        "Tokens of a prompt are reported where its provider counted them, and estimated "
        "where none did. Of a "
        "call that is marked proved the database still gives the fingerprint that was recorded "
        "when it was sent. One that is marked reconstructed was not served by cutbank: what it was "
        "sent is told from the log.",
    )
    if cuts.omissions:
        yield make_tag(
            "p",
            make_tag("strong", "Left out to keep the page small: "),
            "; ".join(cuts.omissions),
            ". The option --full writes all of it.",
        )


def _or_else(parts: Iterable[Markup], otherwise: str) -> Markup:
    return join_markup(parts, "\n") or make_tag("p", otherwise)


def _read_asset(name: str) -> str:
    return (_ASSETS / name).read_text(encoding="utf-8")
