"""What processes were told is stored, and what must be so after each of them was killed."""

import victims
from processes import Ended

from cutbank import SessionStore, StoredSession, verify


class Acknowledged:
    def __init__(self) -> None:
        self.appends: dict[tuple[int, int], tuple[int, int]] = {}
        self.boundaries: dict[int, int] = {}

    def take(self, ended: Ended) -> None:
        for what, told in (
            (first, [int(word) for word in rest])
            for first, *rest in ended.said
            if first in {"ack", "boundary"}
        ):
            number, *numbers = told
            if what == "boundary":
                assert self.boundaries.setdefault(number, numbers[0]) == numbers[0]
            else:
                # Whoever repeats a key, after a crash or not, gets the first result.
                part, first, last = numbers
                assert self.appends.setdefault((number, part), (first, last)) == (first, last)

    @property
    def turns(self) -> int:
        return max((number for number, _ in self.appends), default=-1) + 1

    def check(self, store: SessionStore) -> None:
        """Everything acknowledged is there and equal, nothing is twice, and all of it is sound."""
        session = store.session("session")
        stored = session.recall(search="")
        told = [blocks for number in range(self.turns + 1) for blocks in victims.turn(number)]
        expected = [block for blocks in told for block in blocks]
        assert [block.block for block in stored] == expected[: len(stored)]
        acknowledged = sum(len(victims.turn(number)[part]) for number, part in self.appends)
        # At most the one append that was under way is stored and was not acknowledged.
        assert acknowledged <= len(stored) <= acknowledged + 2
        at = {block.position: block.block for block in stored}
        for (number, part), (first, last) in self.appends.items():
            blocks = victims.turn(number)[part]
            assert at[last] == blocks[-1]
            assert [at[p] for p in range(last - len(blocks) + 1, last + 1)] == blocks
            assert last - first + 1 == len(blocks)
        assert verify(store).violations == []

    def check_boundaries(self, session: StoredSession) -> None:
        for number, boundary in list(self.boundaries.items())[-5:]:
            assert victims.request(session, number).boundary == boundary
        view = session.view()
        served = [boundary for number, boundary in self.boundaries.items() if number % 3 > 0]
        if served:
            assert view.boundary is not None
            assert view.boundary.originator_version >= served[-1]
        if view.boundary:
            # A boundary never stands without its summary, nor is one served that was not activated.
            assert view.summary is not None
            assert view.summary.boundary == view.boundary.originator_version
