"""One page of a session: whole by itself, well formed; what is said in it only stands there."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from html_pages import Page
from hypothesis import example, given
from hypothesis import strategies as st
from lived import LIMIT, POLICY, exchange

from cutbank import Block, BlockKind, SessionStore, StoredSession, ToolCall, ToolResult, Usage
from cutbank.adapters.analysis import session_page
from cutbank.adapters.analysis.page_templates import make_template_environment
from cutbank.adapters.analysis.session_page import (
    read_page_story,
    render_session_page,
    select_content,
    write_page,
)
from cutbank.domain.errors import ExportError, NotFoundError
from cutbank.projections.audit_entries import RequestProof

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
HOSTILE = (
    "</script><script>alert(1)</script>",
    "</pre></details></section>",
    '<img src=x onerror="alert(1)">',
    "\"'><svg onload=alert(1)>",
    "&lt;script&gt; &amp; &#60;",
    "<!-- a comment that never ends",
    "]]> <![CDATA[",
    "$title ${style} $$",
    "turned \u202eback\u2066 and \u200fforth",
    "half a pair \ud83d and \udc00",
    "nul \x00 bell \x07 escape \x1b[31m",
)

OBEYED = "\x00\x07\x1b\u202e\u2066\u200f\ufeff\ud83d\udc00"
"""What a terminal or a browser does not show, but does; and half characters."""


def page(session: StoredSession, *, lineage: str | None = None, full: bool = False) -> Page:
    story = read_page_story(session, lineage)
    return Page(render_session_page(story, select_content(story, is_full=full)))


def a_session(store: SessionStore) -> StoredSession:
    session = store.session("talk")
    for n in range(6):
        session.append(*exchange(session.position, n))
    session.record_call(session.view(), call_id="one")
    session.compact(POLICY, limit=LIMIT)
    session.record_call(session.view(), call_id="two")
    session.append(Block.assistant("Done."))
    return session


def test_the_page_is_a_new_file_that_fetches_nothing(store: SessionStore, tmp_path: Path) -> None:
    session = a_session(store)

    path = tmp_path / "page.html"
    write_page(session, path)

    text = path.read_text(encoding="utf-8")
    assert "default-src 'none'" in text
    found = Page(text)
    for _, attributes in found.elements:
        assert "src" not in attributes
        assert not attributes.get("href", "#").removeprefix("#").startswith(("http", "//", "data"))
    assert "url(" not in text.partition("</style>")[0]
    assert "@import" not in text
    with pytest.raises(ExportError, match="is there already"):
        write_page(session, path)


def test_all_of_a_session_is_on_the_page_and_every_link_leads_somewhere(
    store: SessionStore,
) -> None:
    session = a_session(store)
    story = read_page_story(session)
    view = session.view()
    assert view.summary is not None

    found = page(session)

    ids, texts = found.ids, found.texts
    assert len(set(ids)) == len(ids)
    assert {f"block-{told.position}" for told in story.blocks} <= set(ids)
    assert {f"call-{told.entry.number}" for told in story.calls} <= set(ids)
    (boundary,) = (id for id in ids if id.startswith("boundary-"))
    assert view.summary.text in texts[boundary]
    links = [given["href"] for given in found.named("a")]
    assert links
    assert {link.removeprefix("#") for link in links} <= set(ids)
    before, after = (
        texts[f"call-{told.entry.number}"]
        for told in story.calls
        if told.entry.shown.proof is RequestProof.PROVED
    )
    assert all(word in before for word in ("all of the log", "proved"))
    assert all(word in after for word in ("compaction", "summarised", "proved"))


def test_whatever_is_said_only_stands_there(store: SessionStore) -> None:
    expected = page(saying(store, "plain", "x"))
    for number, text in enumerate(HOSTILE):
        found = page(saying(store, f"evil {number}", text))

        assert [name for name, _ in found.elements] == [name for name, _ in expected.elements]
        assert not any(key.startswith("on") for _, given in found.elements for key in given)
        said = found.texts["block-4"]
        assert text.partition("\x00")[0].partition("\u202e")[0].partition("\ud83d")[0] in said


def saying(store: SessionStore, key: str, text: str) -> StoredSession:
    """A session that says one text wherever something can be said."""
    title = text.encode("utf-8", "replace").decode().replace("\0", "")
    session = store.session(key, title=title)
    session.configure(system_prompt=text)
    session.append(
        Block.user(text),
        Block(kind=BlockKind.DOCUMENT, text=text, name=text),
        ToolCall(tool_call_id="c", name=text, arguments={text: text}),
        ToolResult(tool_call_id="c", content=text, is_error=True),
    )
    return session


@example("\"'>")
@given(st.text(st.characters() | st.sampled_from(OBEYED + "<>&\"'"), max_size=60))
def test_any_text_is_escaped_so_that_it_reads_as_it_was(text: str) -> None:
    template = make_template_environment().from_string('<p title="{{ text }}">{{ text }}</p>')
    written = template.render(text=text)

    assert not set(OBEYED) & set(written)
    assert written.encode("utf-8")
    found = Page(f'<div id="all">{written}</div>')
    assert [name for name, _ in found.elements] == ["div", "p"]
    assert found.named("p")[0]["title"] == found.texts.get("all", "")
    if text.isprintable():
        assert found.texts.get("all", "") == text


def test_a_large_session_is_cut_and_says_so_and_full_is_not(
    store: SessionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_page, "MAX_PAGE_BLOCKS", 8)
    monkeypatch.setattr(session_page, "MAX_PAGE_CALLS", 3)
    session = a_session(store)

    small, full = page(session), page(session, full=True)

    assert sum(given.get("class", "").startswith("block") for given in small.named("details")) == 8
    assert sum(given.get("class") == "call" for given in small.named("details")) == 3
    assert {f"block-{told.position}" for told in read_page_story(session).blocks} <= set(full.ids)
    story = read_page_story(session)
    omitted = select_content(story, is_full=False).omissions
    assert [words.split()[-1] for words in omitted] == ["blocks", "calls"]
    assert select_content(story, is_full=True).omissions == ()
    # However large the newest block is, it is there.
    monkeypatch.setattr(session_page, "MAX_PAGE_CHARACTERS", 10)
    assert select_content(story, is_full=False).blocks == story.blocks[-1:]
    links = {given["href"] for given in small.named("a")}
    assert {link for link in links if link.startswith("#block-")} <= {f"#{id}" for id in small.ids}


def test_the_page_begins_with_what_is_asked_first(store: SessionStore) -> None:
    session = store.session("talk", project="/river/bank")
    session.append(Block.user("Where is the\n  cut?"))
    asked = session.view()
    session.append(Block.assistant("There.", message_id="m"))
    usage = Usage(input=1_000, cache_read=9_000, output=500)
    session.record_call(asked, call_id="1", usage=usage, model="claude-sonnet-4-5")
    session.append(Block.user("And now?"))
    asked = session.view()
    session.append(Block.assistant("Here.", message_id="n"))
    session.record_call(asked, call_id="2", model="claude-sonnet-4-5", cost_usd=0.5)

    story = read_page_story(session)
    text = render_session_page(story, select_content(story, is_full=False))

    said = " ".join(re.sub(r"<[^>]+>", " ", text.partition("</header>")[0]).split())
    assert "Where is the cut? - cutbank" in said
    assert re.search(r"Date \d{4}-\d\d-\d\d \d\d:\d\d.* UTC Project /river/bank", said)
    assert "Model claude-sonnet-4-5 (2 calls)" in said
    assert "Prompts 10,000 tokens in 1 call, reported; " in said
    assert "tokens in 1 call, estimated; 500 tokens written, reported" in said
    # 1,000 tokens at $3, 9,000 at $0.30 and 500 at $15 a million are $0.0132.
    assert "Cost $0.51 Lost nothing: there was no compaction" in said


def test_a_session_of_nothing_has_a_page(store: SessionStore, tmp_path: Path) -> None:
    session = store.session("empty")

    texts = page(session).texts

    assert "The log holds no block." in texts["history"]
    assert "The log tells of no call of a model." in texts["calls"]
    assert "Nothing was compacted" in texts["boundaries"]
    with pytest.raises(NotFoundError):
        write_page(session, tmp_path / "page.html", lineage="nobody")
    assert list(tmp_path.glob("*.html")) == []


def test_a_browser_runs_the_script_opens_what_a_link_names_and_fits_a_phone(
    store: SessionStore, tmp_path: Path
) -> None:
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        pytest.skip(f"none of {', '.join(BROWSERS)} is installed")
    session = a_session(store)
    path = tmp_path / "page.html"
    write_page(session, path)
    measure = """<script>
        document.documentElement.style.width = "390px";
        const line = document.querySelector(".chart .boundary").getBoundingClientRect();
        document.body.dataset.reach = Math.ceil(Math.max(line.right, document.body.scrollWidth));
    </script></body>"""
    path.write_text(path.read_text(encoding="utf-8").replace("</body>", measure), encoding="utf-8")
    words = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}/profile"]

    done = subprocess.run(
        [browser, *words, "--dump-dom", f"{path.as_uri()}#block-3"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    assert re.search(r'<html[^>]* class="scripted"', done.stdout), done.stderr
    assert re.search(r'<details[^>]* id="block-3"[^>]* open', done.stdout)
    reach = re.search(r'data-reach="(\d+)"', done.stdout)
    assert reach, done.stderr
    assert int(reach[1]) <= 390, "on a phone the compaction is off the screen"
