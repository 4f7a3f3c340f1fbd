"""What is known of models: their names, windows, prices, and the limits of sessions."""

import socket
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from codex_talk import THREAD, Rollout
from genai_prices import Usage as TheirUsage
from genai_prices import calc_price
from genai_prices.data_snapshot import get_snapshot

import cutbank
from cutbank import ModelFacts, ModelOverride, Prices, Settings, Usage
from cutbank.adapters.models.model_catalog import (
    CHEAP_MODELS,
    PriceLookup,
    compute_call_cost,
    find_cheaper_model,
    look_up_facts,
)
from cutbank.adapters.settings.compaction_settings import CompactionSettings
from cutbank.domain.context_limit import LimitSource

THEN = datetime(2026, 11, 1, 12, tzinfo=UTC)

# Each as real sessions recorded it, or as Pydantic AI, LiteLLM, OpenRouter, Bedrock, Vertex AI say
# it, with the catalog's name, the provider, the window and the longest answer.
SAID = """
claude-opus-4-5-20251101  claude-opus-4-5  anthropic  200000  64000
claude-sonnet-4  claude-sonnet-4-0  anthropic  200000  64000
claude-3-5-sonnet-20241022  claude-3-5-sonnet  anthropic  200000  8192
gpt-4o-2024-08-06  gpt-4o  openai  128000  16384
gpt-5.6-sol  gpt-5.6-sol  openai  1050000  128000
gpt-5.2-20251211  gpt-5.2  openai  400000  128000
gemini-2.5-flash  gemini-2.5-flash  google  1048576  65536
deepseek/deepseek-chat  deepseek/deepseek-chat  openrouter  64000  None
meta-llama/llama-4-maverick  meta-llama/llama-4-maverick  openrouter  None  None
anthropic:claude-sonnet-4-5  claude-sonnet-4-5  anthropic  200000  64000
openai-responses:gpt-5.1-codex  gpt-5.1  openai  400000  128000
google-gla:gemini-2.5-pro  gemini-2.5-pro  google  1048576  65536
xai:grok-4.5  grok-4.5  x-ai  500000  None
litellm_proxy/anthropic/claude-sonnet-4-20250514  claude-sonnet-4-0  anthropic  200000  64000
azure/gpt-5  gpt-5  azure  400000  128000
anthropic/claude-opus-4.5  anthropic/claude-opus-4.5  openrouter  200000  64000
openrouter:openai/gpt-5-mini  openai/gpt-5-mini  openrouter  400000  128000
ARN/us.anthropic.claude-opus-4-8  regional.anthropic.claude-opus-4-8-v1:0  aws  1000000  128000
bedrock:global.anthropic.claude-opus-5  global.anthropic.claude-opus-5  aws  1000000  128000
claude-opus-4-5@20251101  claude-opus-4-5  anthropic  200000  64000
vertex_ai/claude-opus-4-5@20251101  claude-opus-4-5  google  200000  64000
publishers/google/models/gemini-2.5-pro  gemini-2.5-pro  google  1048576  65536
claude-sonnet-4-5[1m]  claude-sonnet-4-5  anthropic  1000000  64000
"""
ARN = "arn:aws:bedrock:us-east-1:123456789012:inference-profile"


UNHEARD_OF = ["", "<synthetic>", "default", "sonnet", "claude", "gpt-99", "gpt-5-2099-01-01"]
UNHEARD_OF += ["claude-opus-4-55", "claude-opus-4-5-7", "claude-opus-4-5-mini", "claude-opus-5-7"]
UNHEARD_OF += ["deepseek-v4-flash-free", "deepseek-r1:8b", "gpt-oss:20b", "llama3.1:8b"]
UNHEARD_OF += ["ollama:qwen3:8b", "azure:our-deployment", "opencode-go/deepseek-v4-flash"]
UNHEARD_OF += ["openai/openrouter-llama-4-maverick"]
UNHEARD_OF += ["arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abc"]


def known(said: str, *overrides: dict[str, ModelOverride], **how: Any) -> ModelFacts:
    facts = look_up_facts(said, *overrides, **how)
    assert facts is not None, said
    return facts


def test_a_model_is_known_by_every_name_it_goes_by() -> None:
    for said, *facts in map(str.split, SAID.replace("ARN", ARN).strip().splitlines()):
        found = known(said, at=THEN)

        assert [found.name, found.provider, str(found.context), str(found.output)] == facts, said
        assert found.prices, said
        assert known(said.upper(), at=THEN) == found, said


def test_a_prompt_may_have_what_the_longest_answer_leaves() -> None:
    prompts = {
        "gpt-5": 272_000,
        "openrouter/openai/gpt-5.4": 922_000,
        "gpt-4.1": 1_000_000,
        "claude-sonnet-4-5[1m]": 1_000_000,
        "gemini-2.5-pro": 1_048_576,
        "meta-llama/llama-4-maverick": None,
    }
    assert {said: known(said).prompt for said in prompts} == prompts


def test_what_only_resembles_a_known_model_is_unknown() -> None:
    assert not [said for said in UNHEARD_OF if look_up_facts(said) is not None]
    assert compute_call_cost("gpt-99", Usage(input=1, output=1)) is None


def test_the_family_is_who_made_it_whoever_serves_it() -> None:
    families = {
        "us.anthropic.claude-opus-4-8": "anthropic",
        **dict.fromkeys(("azure:gpt-5", "o3"), "openai"),
        "openrouter/google/gemini-2.5-pro": "google",
        "groq:llama-3.1-8b-instant": "meta",
        "mistral:devstral-2512": "mistral",
        "qwen/qwen3-coder": "qwen",
        "GLM-4.7": "zai",
    }
    assert {said: known(said).family for said in families} == families


def test_prices_are_those_of_the_provider_and_of_the_time() -> None:
    prices = {
        "claude-sonnet-4-5-20250929": (
            Prices(3, 15, 0.3, 3.75, 6),
            Prices(6, 22.5, 0.6, 7.5, 12, above=200_000),
        ),
        "us.anthropic.claude-sonnet-4-5-20250929-v1:0": (Prices(3.3, 16.5, 0.33, 4.125, 6.6),),
        "qwen/qwen3-coder:free": (Prices(0, 0),),
        "perplexity:sonar": (),
    }
    assert {said: known(said, at=THEN).prices for said in prices} == prices
    assert known("o3", at=datetime(2025, 5, 1, tzinfo=UTC)).prices[0].input == 10
    assert known("o3", at=datetime(2025, 7, 1, tzinfo=UTC)).prices[0].input == 2


def test_a_call_is_priced_at_its_own_half_hour() -> None:
    prices, usage = PriceLookup(), Usage(input=1_000, output=500)
    costs = set()
    for hour, minute in ((0, 10), (0, 29), (0, 30), (0, 59), (16, 29), (16, 30)):
        at = datetime(2025, 6, 1, hour, minute, 59, tzinfo=UTC)
        cost = prices.price_call("deepseek:deepseek-chat", usage, at)
        assert cost is not None
        assert sum(cost) == compute_call_cost("deepseek:deepseek-chat", usage, at=at), at
        costs.add(sum(cost))
    assert len(costs) == 2


# Of each of these, all models that are paid for by tokens alone.
SERVED = {"anthropic": "anthropic:", "openai": "openai:", "google": "google:", "x-ai": "xai:"}
SERVED |= {"openrouter": "openrouter/", "deepseek": "deepseek:", "azure": "azure:"}
USAGES = [
    Usage(input=1_000, output=500),
    Usage(input=10, cache_read=150_000, cache_write=3_000, output=2_000),
    Usage(input=190_000, cache_read=10_001, output=1),
    Usage(input=0, cache_read=300_000, cache_write=300_000, output=64_000),
]


def test_costs_are_what_the_catalog_itself_reckons() -> None:
    for provider in SERVED:
        compared = 0
        for model in next(one for one in get_snapshot().providers if one.id == provider).models:
            said = SERVED[provider] + model.id
            for usage in USAGES:
                ours = compute_call_cost(said, usage, at=THEN)
                if ours is None or model.id.endswith(":free"):
                    continue
                theirs = TheirUsage(
                    input_tokens=usage.context,
                    cache_read_tokens=usage.cache_read or 0,
                    cache_write_tokens=usage.cache_write or 0,
                    output_tokens=usage.output,
                )
                price = calc_price(
                    theirs, model.id, provider_id=provider, genai_request_timestamp=THEN
                )
                assert ours == pytest.approx(float(price.total_price), rel=1e-9), said
                compared += 1
        assert compared >= len(USAGES) * 4, provider


def test_nothing_is_asked_of_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("the catalog went to the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)

    assert look_up_facts("claude-opus-4-5") is not None
    assert look_up_facts("unknown-model") is None


def test_an_override_goes_by_the_name_that_is_said_or_the_catalogs() -> None:
    for named in ["claude-opus-4-5-20251101", "Claude-Opus-4-5", " claude-opus-4-5 "]:
        overrides = {named: ModelOverride(context=1_000_000), "other": ModelOverride(context=1)}
        facts = known("claude-opus-4-5-20251101", overrides)
        assert (facts.context, facts.output) == (1_000_000, 64_000), named
    names = ("claude-opus-4-5", "azure:claude-opus-4-5")
    both = {name: ModelOverride(context=number) for number, name in enumerate(names, 1)}
    assert known("azure:claude-opus-4-5", both).context == 2
    ours = {"our-model": ModelOverride(context=32_000, input_usd=1, output_usd=2)}
    assert look_up_facts("our-model", ours) == ModelFacts(
        "our-model", context=32_000, prompt=32_000, prices=(Prices(1, 2),), is_context_set=True
    )
    assert compute_call_cost("our-model", Usage(input=500_000, output=250_000), ours) == 1


def test_a_beta_enlarges_the_window_of_those_that_heed_it() -> None:
    beta = "context-1m-2025-08-07"
    contexts = {
        "claude-sonnet-4-5-20250929": 1_000_000,
        "bedrock:eu.anthropic.claude-sonnet-4-5-20250929-v1:0": 1_000_000,
        "claude-haiku-4-5-20251001": 200_000,
        "gpt-4o": 128_000,
        "sonnet-of-ours": 1_000_000,
    }
    for model, context in contexts.items():
        facts = known(model, betas=[beta])
        assert facts.context == facts.prompt == context, model
    overrides = {"claude-sonnet-4-5": ModelOverride(context=500_000)}
    assert known("claude-sonnet-4-5", overrides, betas=[beta, "another-beta"]).context == 500_000
    assert look_up_facts("unknown-model", betas=[beta]) is None


def test_a_cheaper_model_is_served_by_the_same_provider_if_one_is_known() -> None:
    cheaper = {
        "claude-opus-4-5-20251101": "claude-haiku-5-5",
        "anthropic:claude-sonnet-4-5": "anthropic:claude-haiku-5-5",
        "openrouter/anthropic/claude-opus-4.5": "openrouter/anthropic/claude-haiku-5.5",
        "us.anthropic.claude-opus-4-8": "us.anthropic.claude-haiku-5-5",
        "bedrock:eu.anthropic.claude-opus-4-8": "bedrock:eu.anthropic.claude-haiku-5-5",
        "openai-responses:gpt-5.5": "openai-responses:gpt-6-luna",
        "google-gla:gemini-2.5-pro": "google-gla:gemini-2.5-flash-lite",
    }
    cheapest = ("claude-haiku-5-5", "gpt-5-nano", "azure:gpt-5", "ollama:qwen3:8b", "our-model")
    wanted = {**cheaper, **dict(zip(cheapest, cheapest, strict=True))}
    assert {model: find_cheaper_model(model) for model in wanted} == wanted


def test_each_cheap_model_is_in_the_catalog_where_it_is_said_to_be() -> None:
    said = {"aws": "us.", "google": "google:", "zai": "zai:", "openrouter": "openrouter/"}
    for served, model in CHEAP_MODELS.items():
        facts = known(said.get(served[0], "") + model)

        assert (facts.provider, facts.family) == served
        assert facts.prices, model
        assert facts.context is None or facts.context >= 200_000, model


def test_a_limit_is_of_the_user_then_of_the_log_for_its_own_model_then_of_the_catalog(
    tmp_path: Path,
) -> None:
    log, model = LimitSource.LOG, LimitSource.MODEL
    own, opus = ("gpt-5.5", 9_000, 258_400), "claude-opus-4-5"
    asked: dict[str, Any] = {}
    rows: list[tuple[tuple[str, int, int | None], int | None, dict[str, Any], Any]] = [
        (own, None, asked, (258_400, log)),
        (own, None, {"model": "openai/gpt-5.5"}, (258_400, log)),
        (own, None, {"model": opus}, (200_000, model)),
        (own, 90_000, asked, (90_000, LimitSource.SETTINGS)),
        (own, 90_000, {"limit": 7}, (7, LimitSource.ARGUMENT)),
        (("claude-sonnet-4-5[1m]", 9_000, None), None, asked, (1_000_000, log)),
        ((opus, 9_000, None), None, asked, (200_000, model)),
        ((opus, 240_000, None), None, asked, (1_000_000, log)),
        (("gpt-5", 300_000, None), None, asked, (300_000, log)),
        (("no-such-model", 9_000, None), None, asked, (200_000, LimitSource.DEFAULT)),
        (("no-such-model", 210_000, None), None, asked, (210_000, log)),
    ]
    for (name, prompt, window), limit, how, expected in rows:
        rollout = Rollout()
        rollout.model(name)
        if window:
            rollout.event("task_started", model_context_window=window)
        rollout.user("hello")
        rollout.says("hello")
        rollout.counts(prompt, output=1)
        path = tmp_path / "rollout.jsonl"
        path.write_bytes(rollout.raw())
        settings = Settings(compaction=CompactionSettings(limit=limit))
        with cutbank.open(":memory:", settings=settings) as store:
            cutbank.import_transcripts(store, path)
            session = store.session(THREAD, create=False)
            assert cutbank.find_context_limit(session, **how) == expected, (name, prompt, how)
