"""What models wrote for replays: kept by all that they were asked, believed if it is whole."""

import sqlite3
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from databases import on_sqlite
from opened_stores import store_of

import cutbank
from cutbank import Block, StoredSession
from cutbank.adapters.analysis.replaying.cached_summaries import CachedSummaries, open_summary_cache
from cutbank.adapters.models.summarizers.llm_summarizer import LlmSummarizer
from cutbank.adapters.settings.settings import Settings
from cutbank.adapters.storage.sqlite.checked_cache import make_cache_key
from cutbank.domain.errors import InvalidSettingError, MissingSummariesError
from cutbank.domain.item import Item
from cutbank.domain.ranges import Ranges
from cutbank.domain.session_events import Usage
from cutbank.domain.summaries.summarizer import Draft, Material

DRAFT = Draft("They spoke of clay.", {"Goal": "clay"}, Ranges.span(3, 4), model="m", cost_usd=0.5)
LIMIT = 1_500
SMALL = {"keep_tokens": "300", "reserve_tokens": "300"}
MODEL = "anthropic:claude-haiku-4-5"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "summaries.db"


def material(text: str = "clay", **more: Any) -> Material:
    item = Item(position=3, block=Block.user(text), turn=1, tokens=40)
    return Material(removed_items=(item,), covers=Ranges.span(1, 4), budget=100, **more)


# The key


def test_another_question_has_another_answer(file: Path) -> None:
    asked: list[Material] = []

    def ask(one: Material) -> Draft:
        asked.append(one)
        return DRAFT

    others = [
        material("clay!"),
        material(previous="earlier"),
        material(instructions="mind the clay"),
        material(prefix=Ranges.span(3, 3)),
        replace(material(), budget=101),
        replace(material(), covers=Ranges.span(1, 5)),
    ]
    with open_summary_cache(file) as cache:
        summaries = CachedSummaries("m", ["words"], cache, ask)
        for one in (material(), *others) * 2:
            summaries.summarize(one)
        replace(summaries, model="n").summarize(material())
        replace(summaries, wording=["others"]).summarize(material())

    assert len(asked) == 1 + len(others) + 2


def test_keys_go_by_what_is_said_and_not_by_how_it_is_laid_out() -> None:
    assert make_cache_key({"a": 1, "b": [2]}) == make_cache_key({"b": [2], "a": 1})
    assert make_cache_key({"a": "\ud800"}) != make_cache_key({"a": "\ud801"})


# A replay


@dataclass
class Model:
    """Writes what a model might; counts how often it was asked."""

    asked: list[Material] = field(default_factory=list)

    def __call__(self, material: Material) -> Draft:
        self.asked.append(material)
        text = f"- They spoke of the clay under the bank, part {len(self.asked)}."
        return Draft(text, model="small", usage=Usage(input=9, output=9), cost_usd=0.25)


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Model:
    """The provider, at the port behind which it is."""
    model = Model()
    monkeypatch.setattr(LlmSummarizer, "summarize", model)
    return model


def talk(session: StoredSession) -> None:
    store_of(session).apply_settings(
        Settings.model_validate({"summary": {"model": MODEL, "retries": 0}})
    )
    for turn in range(30):
        session.append(Block.user(f"question {turn} " + "q" * 200))
        session.append(Block.assistant(f"answer {turn} " + "a" * 200))


@on_sqlite
def test_no_model_is_asked_by_chance(session: StoredSession, file: Path, model: Model) -> None:
    talk(session)

    with pytest.raises(MissingSummariesError) as told:
        cutbank.replay(
            session, "pi", settings=SMALL, limit=LIMIT, summarizer="llm", cache=file, lineage="x"
        )

    assert session.log.lineages == []
    said = str(told.value)
    assert "summaries are not in the cache" in said
    assert "about $" in said
    assert "`replay --allow-llm` asks it" in said
    assert "\n" not in said
    assert model.asked == []


@on_sqlite
def test_what_was_asked_once_is_never_asked_again(
    session: StoredSession, file: Path, model: Model
) -> None:
    talk(session)
    how: Any = {"settings": SMALL, "limit": LIMIT, "summarizer": "llm", "cache": file}

    first = cutbank.replay(session, "pi", **how, allow_llm=True)
    asked = len(model.asked)
    second = cutbank.replay(session, "pi", **how)
    third = cutbank.replay(session, "pi", **how, allow_llm=True)

    assert asked == len(first.compactions) > 1
    assert len(model.asked) == asked
    assert first.summarizer_counts == {"llm": asked}
    assert all(one.summary_input_tokens > 0 for one in first.compactions)
    assert first.calls == second.calls == third.calls


@on_sqlite
def test_a_damaged_entry_is_told_and_asked_anew(
    session: StoredSession, file: Path, model: Model
) -> None:
    talk(session)
    how: Any = {"settings": SMALL, "limit": LIMIT, "summarizer": "llm", "cache": file}
    first = cutbank.replay(session, "pi", **how, allow_llm=True)
    asked = len(model.asked)
    with sqlite3.connect(file) as db:
        db.execute("UPDATE kept SET content = CAST(replace(content, 'clay', 'gold') AS BLOB)")
    db.close()

    with pytest.raises(MissingSummariesError):
        cutbank.replay(session, "pi", **how)
    again = cutbank.replay(session, "pi", **how, allow_llm=True)

    assert again.damaged >= 1
    assert len(model.asked) > asked
    assert not any("gold" in one.summary.text for one in again.compactions if one.summary)
    assert len(again.compactions) == len(first.compactions)


@on_sqlite
def test_leave_to_ask_a_model_that_nobody_would_ask_is_refused(
    session: StoredSession, subtests: pytest.Subtests
) -> None:
    ways: list[dict[str, Any]] = [{"allow_llm": True}, {"cache": Path("c.db")}]
    for how in ways:
        with (
            subtests.test(str(how)),
            pytest.raises(InvalidSettingError, match="are for summaries by llm"),
        ):
            cutbank.replay(session, "pi", **how)
