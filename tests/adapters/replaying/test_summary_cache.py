"""What models wrote for replays: kept by all that they were asked, believed if it is whole."""

import sqlite3
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from databases import on_sqlite

from cutbank import Block, StoredSession
from cutbank.adapters.analysis.replaying.cached_summaries import CachedSummaries
from cutbank.adapters.analysis.replaying.summary_cache import summaries_in
from cutbank.adapters.models.summarizers.llm_summarizer import Llm
from cutbank.adapters.runtime.compaction import from_settings
from cutbank.adapters.settings.settings import Settings
from cutbank.adapters.storage.sqlite.checked_cache import key_of
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
    return Material(gone=(item,), covers=Ranges.span(1, 4), budget=100, **more)


# The key


@pytest.mark.parametrize(
    "other",
    [
        material("clay!"),
        material(previous="earlier"),
        material(instructions="mind the clay"),
        material(prefix=Ranges.span(3, 3)),
        replace(material(), budget=101),
        replace(material(), covers=Ranges.span(1, 5)),
    ],
)
def test_another_question_has_another_answer(file: Path, other: Material) -> None:
    asked: list[Material] = []

    def ask(one: Material) -> Draft:
        asked.append(one)
        return DRAFT

    with summaries_in(file) as cache:
        summaries = CachedSummaries("m", ["words"], cache, ask)
        for one in (material(), material(), other, other):
            summaries.summarise(one)
        replace(summaries, model="n").summarise(other)
        replace(summaries, wording=["others"]).summarise(other)

    assert len(asked) == 4


def test_keys_go_by_what_is_said_and_not_by_how_it_is_laid_out() -> None:
    assert key_of({"a": 1, "b": [2]}) == key_of({"b": [2], "a": 1})
    assert key_of({"a": "\ud800"}) != key_of({"a": "\ud801"})


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
    monkeypatch.setattr(Llm, "summarise", model)
    return model


def talk(session: StoredSession) -> None:
    session.store.go_by(Settings.model_validate({"summary": {"model": MODEL, "retries": 0}}))
    for turn in range(30):
        session.append(Block.user(f"question {turn} " + "q" * 200))
        session.append(Block.assistant(f"answer {turn} " + "a" * 200))


@on_sqlite
def test_no_model_is_asked_by_chance(session: StoredSession, file: Path, model: Model) -> None:
    talk(session)

    with pytest.raises(MissingSummariesError) as told:
        session.replay("pi", settings=SMALL, limit=LIMIT, summariser="llm", cache=file)

    said = str(told.value)
    assert "summaries are not in the cache" in said
    assert "about $" in said
    assert "`replay --allow-llm` asks it" in said
    assert "\n" not in said
    assert model.asked == []


@on_sqlite
def test_nothing_is_stored_of_a_replay_that_misses_a_summary(
    session: StoredSession, file: Path, tmp_path: Path
) -> None:
    talk(session)

    with pytest.raises(MissingSummariesError):
        session.replay(
            "pi",
            settings=SMALL,
            limit=LIMIT,
            summariser="llm",
            cache=file,
            lineage="x",
            dump_views=tmp_path / "views.jsonl",
        )

    assert session.lineages == []
    assert not (tmp_path / "views.jsonl").exists()


@on_sqlite
def test_what_was_asked_once_is_never_asked_again(
    session: StoredSession, file: Path, model: Model
) -> None:
    talk(session)
    how: Any = {"settings": SMALL, "limit": LIMIT, "summariser": "llm", "cache": file}

    first = session.replay("pi", **how, allow_llm=True)
    asked = len(model.asked)
    second = session.replay("pi", **how)
    third = session.replay("pi", **how, allow_llm=True)

    assert asked == len(first.compactions) > 1
    assert len(model.asked) == asked
    assert first.summarisers == {"llm": asked}
    assert all(one.bought > 0 for one in first.compactions)
    assert first.calls == second.calls == third.calls


@on_sqlite
def test_a_damaged_entry_is_told_and_asked_anew(
    session: StoredSession, file: Path, model: Model
) -> None:
    talk(session)
    how: Any = {"settings": SMALL, "limit": LIMIT, "summariser": "llm", "cache": file}
    first = session.replay("pi", **how, allow_llm=True)
    asked = len(model.asked)
    with sqlite3.connect(file) as db:
        db.execute("UPDATE kept SET content = CAST(replace(content, 'clay', 'gold') AS BLOB)")
    db.close()

    with pytest.raises(MissingSummariesError):
        session.replay("pi", **how)
    again = session.replay("pi", **how, allow_llm=True)

    assert again.damaged >= 1
    assert len(model.asked) > asked
    assert not any("gold" in one.summary.text for one in again.compactions if one.summary)
    assert len(again.compactions) == len(first.compactions)


@on_sqlite
def test_somebody_has_to_say_which_model(session: StoredSession) -> None:
    with pytest.raises(InvalidSettingError, match=r"summary\.model"):
        session.replay("pi", summariser="llm")


@on_sqlite
def test_the_model_is_the_one_of_the_settings(session: StoredSession) -> None:
    talk(session)
    llm = from_settings.llm_by(session.store.settings)
    assert isinstance(llm, Llm)
    assert llm.model == MODEL


@on_sqlite
@pytest.mark.parametrize("how", [{"allow_llm": True}, {"cache": Path("c.db")}])
def test_leave_to_ask_a_model_that_nobody_would_ask_is_refused(
    session: StoredSession, how: dict[str, Any]
) -> None:
    with pytest.raises(InvalidSettingError, match="are for summaries by llm"):
        session.replay("pi", **how)
