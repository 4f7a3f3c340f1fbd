"""Names are OpenTelemetry's own where it has one, and cutbank's everywhere else."""

import re

from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from opentelemetry.semconv.attributes import error_attributes
from telemetry_seen import Seen

from cutbank import CompactionOptions, StoredSession
from cutbank.adapters.runtime.telemetry.spans import USAGE_TOKEN_KINDS
from cutbank.domain.policies.reserve_headroom import ReserveHeadroom
from cutbank.domain.session_events import Usage
from cutbank.domain.summaries.summarizer import Draft, Material

THEIRS = {
    value
    for module in (gen_ai_attributes, error_attributes)
    for value in vars(module).values()
    if isinstance(value, str)
}
OURS = re.compile(r"cutbank(\.[a-z][a-z_]*)+")


class BreaksOff:
    name = "breaks off"

    def summarize(self, material: Material) -> Draft:
        usage = Usage(input=1, cache_read=2, cache_write=3, output=4, reasoning=5)
        return Draft("A", model="small", usage=usage, cost_usd=0.1, was_truncated=True)


def test_each_attribute_has_a_name_that_is_known_or_ours(talk: StoredSession, seen: Seen) -> None:
    talk.compact(
        ReserveHeadroom(keep_tokens=500),
        limit=8_000,
        options=CompactionOptions(summarizers=[BreaksOff()]),
    )

    names = {name for span in seen.spans for name in span.attributes or {}}
    names |= {
        name for span in seen.spans for event in span.events for name in event.attributes or {}
    }
    names |= {name for points in seen.measured().values() for told, _ in points for name in told}
    assert names >= {*USAGE_TOKEN_KINDS, "error.type", "gen_ai.usage.reasoning.output_tokens"}
    assert not [name for name in names if name not in THEIRS and not OURS.fullmatch(name)]
    values = [value for span in seen.spans for value in (span.attributes or {}).values()]
    assert {type(value) for value in values} == {str, int, float}
