"""A text that stands for history says, line by line, what it says as a whole."""

from hypothesis import example, given
from hypothesis import strategies as st

from cutbank.domain.fidelity.anchors import MAX_LINE_CHARS, find_anchors, list_carried_keys
from cutbank.domain.fidelity.plain_words import PlainWords
from cutbank.domain.fidelity.prose import (
    MAX_PAIR_DISTANCE,
    LineCache,
    SummaryContent,
    find_pairs_within,
)

ROOTS = ("/home/me/zone",)
PIECES = st.sampled_from(
    [
        *("river", "Bank", "deep", "the", "zone_of", "m.zone_of", "src/deep.py", "bank/"),
        *("/home/me/zone/a.py", "12 ms", "12", "ms", "#7", "(", ")", ",", ": ", "--deep", "\n"),
        *(" ", " ", " ", "\t", "\u00a0", "x" * (MAX_LINE_CHARS - 5)),
    ]
)
TEXTS = st.lists(PIECES, max_size=40).map("".join)
ASKED = [("bank", "deep"), ("bank", "river")]


@example(["bank river river deep"])
@given(st.lists(TEXTS, min_size=1, max_size=4))
def test_a_text_always_says_what_its_facts_and_its_words_say(texts: list[str]) -> None:
    plain = PlainWords(ROOTS)
    lines = LineCache(plain, ASKED)  # each text has lines of those before it

    for text in (*texts, "\n".join(texts)):
        told = SummaryContent(text, lines)

        facts = list(find_anchors(text, ROOTS))
        words = list(PlainWords(ROOTS).iter_line_words(text))
        near = {pair for line in words for pair in find_pairs_within(line, MAX_PAIR_DISTANCE)}
        assert told.facts == {fact.key for fact in facts}
        assert told.carried_keys == {key for fact in facts for key in list_carried_keys(fact)}
        assert told.words == {word for line in words for word in line}
        assert told.pairs == near & set(ASKED)
