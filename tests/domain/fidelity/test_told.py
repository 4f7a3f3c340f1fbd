"""A text that stands for history says, line by line, what it says as a whole."""

from hypothesis import example, given
from hypothesis import strategies as st

from cutbank.domain.fidelity.anchors import LINE, anchors_of, carried_by
from cutbank.domain.fidelity.plain_words import PlainWords
from cutbank.domain.fidelity.summary_content import APART, Lines, Told, pairs_within

ROOTS = ("/home/me/zone",)
PIECES = st.sampled_from(
    [
        *("river", "Bank", "deep", "the", "zone_of", "m.zone_of", "src/deep.py", "bank/"),
        *("/home/me/zone/a.py", "12 ms", "12", "ms", "#7", "(", ")", ",", ": ", "--deep", "\n"),
        *(" ", " ", " ", "\t", "\u00a0", "x" * (LINE - 5)),
    ]
)
TEXTS = st.lists(PIECES, max_size=40).map("".join)
ASKED = [("bank", "deep"), ("bank", "river")]


@example(["bank river river deep"])
@given(st.lists(TEXTS, min_size=1, max_size=4))
def test_a_text_always_says_what_its_facts_and_its_words_say(texts: list[str]) -> None:
    plain = PlainWords(ROOTS)
    lines = Lines(plain, ASKED)  # each text has lines of those before it

    for text in (*texts, "\n".join(texts)):
        told = Told(text, lines)

        facts = list(anchors_of(text, ROOTS))
        words = list(PlainWords(ROOTS).lines(text))
        near = {pair for line in words for pair in pairs_within(line, APART)}
        assert told.facts == {fact.key for fact in facts}
        assert told.carried == {key for fact in facts for key in carried_by(fact)}
        assert told.bag == {word for line in words for word in line}
        assert told.pairs == near & set(ASKED)
