"""What pydantic-ai traces of its requests stands below the summariser that made them."""

from pydantic_ai.models.instrumented import InstrumentationSettings, InstrumentedModel
from summariser_talk import Scripted
from telemetry_seen import Branch, Seen

from cutbank import CompactionOptions, StoredSession
from cutbank.adapters.models.summarizers.llm_summarizer import LlmSummarizer
from cutbank.domain.policies.reserve_headroom import ReserveHeadroom


def test_requests_to_a_model_stand_below_their_summariser(talk: StoredSession, seen: Seen) -> None:
    told = InstrumentationSettings(tracer_provider=seen.tracers, meter_provider=seen.meters)
    scripted = Scripted(lambda _: "A summary of it.")
    model = InstrumentedModel(scripted.model, told)

    talk.compact(
        ReserveHeadroom(keep_tokens=500),
        limit=8_000,
        options=CompactionOptions(summarizers=[LlmSummarizer(model)]),
    )

    requests: list[Branch] = [("chat scripted", []) for _ in scripted.prompts]
    assert requests
    assert seen.tree() == [("cutbank.compact", [("cutbank.summarise", requests)])]
    assert seen.named("cutbank.summarise")[0]["gen_ai.response.model"] == "scripted"
