"""A compaction by threshold must pay for itself, if the settings say so."""

import pytest
from opened_stores import store_of
from short_sessions import CutAt, said

from cutbank import CompactionOptions, NothingToCompactError, Settings, StoredSession, Trigger

MODEL = "claude-sonnet-4-6"


def test_what_breaks_a_larger_cache_than_it_saves_is_refused_with_both_amounts(
    session: StoredSession,
) -> None:
    asked = {"worthwhile": "price", "minimum_gain": 0.0}
    store_of(session).apply_settings(Settings.model_validate({"compaction": asked}))
    blocks = [session.append(said(f"q{number}")).last for number in range(40)]

    with pytest.raises(NothingToCompactError, match=r"would save \$[\d.]+, and cost \$[\d.]+"):
        compact(session, blocks[8], Trigger.THRESHOLD)

    assert compact(session, blocks[8], Trigger.MANUAL)
    assert compact(session, blocks[-1], Trigger.THRESHOLD)


def compact(session: StoredSession, cut: int, trigger: Trigger) -> bool:
    options = CompactionOptions(trigger=trigger)
    return session.compact(CutAt(cut), model=MODEL, options=options).compacted
