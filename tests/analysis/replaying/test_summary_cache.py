"""What models wrote for replays: kept by all that they were asked, believed if it is whole."""

import asyncio
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from opened_stores import store_of

import cutbank
from cutbank import Block, LlmSummarizer, Ranges, Settings, StoredSession, Usage, WindowItem
from cutbank.adapters.analysis.deciders import CachedSummaries, open_summary_cache
from cutbank.adapters.storage.databases.checked_cache import make_cache_key
from cutbank.domain.errors import MissingSummariesError
from cutbank.domain.summaries.summarizer import Draft, Material

BY_LLM: Any = {
    "policy": "pi",
    "settings": {"keep_tokens": "300", "reserve_tokens": "300"},
    "limit": 1_500,
    "summarizer": "llm",
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "summaries.db"


@dataclass
class Model:
    """Writes what a model might; counts how often it was asked."""

    asked: list[Material] = field(default_factory=list)

    name: str = "llm"

    def summarize(self, material: Material) -> Draft:
        self.asked.append(material)
        text = f"- They spoke of the clay under the bank, part {len(self.asked)}."
        return Draft(text, model="small", usage=Usage(input=9, output=9), cost_usd=0.25)


@pytest.fixture
def model(session: StoredSession, monkeypatch: pytest.MonkeyPatch) -> Model:
    """The provider, at the port behind which it is, and a session to compact."""
    model = Model()
    monkeypatch.setattr(LlmSummarizer, "summarize", lambda _, given: model.summarize(given))
    summary = {"model": "anthropic:claude-haiku-4-5", "retries": 0}
    store_of(session).apply_settings(Settings.model_validate({"summary": summary}))
    for turn in range(30):
        session.append(Block.user(f"question {turn} " + "q" * 200))
        session.append(Block.assistant(f"answer {turn} " + "a" * 200))
    return model


def material(text: str = "clay", **more: Any) -> Material:
    item = WindowItem(position=3, block=Block.user(text), turn=1, tokens=40)
    return Material(removed_items=(item,), covers=Ranges.span(1, 4), budget=100, **more)


def test_another_question_has_another_answer(file: Path) -> None:
    model = Model()
    others = [
        material("clay!"),
        material(previous="earlier"),
        material(instructions="mind the clay"),
        material(prefix=Ranges.span(3, 3)),
        replace(material(), budget=101),
        replace(material(), covers=Ranges.span(1, 5)),
    ]
    with open_summary_cache(file) as cache:
        summaries = CachedSummaries("m", ["words"], cache, model)
        for one in (material(), *others) * 2:
            asyncio.run(summaries.summarize(one))
        for other in (replace(summaries, model="n"), replace(summaries, wording=["others"])):
            asyncio.run(other.summarize(material()))

    assert len(model.asked) == 1 + len(others) + 2


def test_keys_go_by_what_is_said_and_not_by_how_it_is_laid_out() -> None:
    assert make_cache_key({"a": 1, "b": [2]}) == make_cache_key({"b": [2], "a": 1})
    assert make_cache_key({"a": "\ud800"}) != make_cache_key({"a": "\ud801"})


def test_no_model_is_asked_by_chance(session: StoredSession, file: Path, model: Model) -> None:
    with pytest.raises(MissingSummariesError) as told:
        cutbank.replay(session, **BY_LLM, cache=file, lineage="x")

    assert session.log.lineages == []
    said = str(told.value)
    for words in ("is not in the cache", str(file), "`replay --allow-llm` asks"):
        assert words in said
    assert "\n" not in said
    assert model.asked == []


def test_what_was_asked_once_is_never_asked_again(
    session: StoredSession, file: Path, model: Model
) -> None:
    first = cutbank.replay(session, **BY_LLM, cache=file, allow_llm=True)
    asked = len(model.asked)
    second = cutbank.replay(session, **BY_LLM, cache=file)
    third = cutbank.replay(session, **BY_LLM, cache=file, allow_llm=True)

    assert asked == len(first.compactions) > 1
    assert len(model.asked) == asked
    assert first.summarizer_counts == {"llm": asked}
    assert all(one.summary_input_tokens > 0 for one in first.compactions)
    assert first.calls == second.calls == third.calls
