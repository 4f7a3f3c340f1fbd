"""A program's own format for views is called by its name, also when a call is audited."""

import pytest

from cutbank import Block, InvalidSettingError, StoredSession, audit_call, register_renderer
from cutbank.projections.rendering.sendable import JsonObject
from cutbank.projections.view_content import ViewContent


@pytest.fixture(autouse=True)
def registered(own_renderers: None) -> None:
    register_renderer("words", render_words)


def render_words(view: ViewContent) -> JsonObject:
    return {"words": [entry.text for entry in view.entries]}


def render_lengths(view: ViewContent) -> JsonObject:
    return {"words": [len(entry.text) for entry in view.entries]}


def test_a_call_is_audited_in_the_version_that_it_was_sent_in(session: StoredSession) -> None:
    session.append(Block.user("Go."))
    view = session.view()
    session.record_call(view, call_id="c", renderer="words")

    register_renderer("words", render_lengths, version=2)

    assert view.render("words") == {"words": [3]}
    assert view.render("words/1") == {"words": ["Go."]}
    call = audit_call(session, 1)
    assert (call.is_exact, call.request()) == (True, {"words": ["Go."]})


@pytest.mark.parametrize("name", ["anthropic", "a/b", "", "words"])
def test_a_name_that_is_taken_or_odd_is_refused(name: str) -> None:
    with pytest.raises(InvalidSettingError, match="a renderer"):
        register_renderer(name, render_lengths)

    register_renderer("words", render_words)
