"""The ten invariants of docs/design.md hold whatever is done, on both databases."""

import pytest
from databases import each_database
from hypothesis import seed, settings
from hypothesis.stateful import run_state_machine_as_test
from the_invariants import TheInvariants


def on(engine: str, request: pytest.FixtureRequest) -> type[TheInvariants]:
    """The machine for one of the databases."""
    if engine == "sqlite":
        return TheInvariants
    server = request.getfixturevalue("postgres")
    return type("TheInvariantsOnPostgres", (TheInvariants,), {"server": server})


@each_database
def test_the_invariants_hold_whatever_is_done(engine: str, request: pytest.FixtureRequest) -> None:
    run_state_machine_as_test(
        on(engine, request),
        settings=settings(
            max_examples=12 if engine == "sqlite" else 5, stateful_step_count=30, deadline=None
        ),
    )


@each_database
@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_the_invariants_hold_in_hundreds_of_examples(
    engine: str, part: int, request: pytest.FixtureRequest
) -> None:
    # Each makes a schema and asks a server: a third as many take as long.
    examples = 60 if engine == "sqlite" else 20
    # Without a seed of its own each part would try the same examples.
    machine = type("PartOfTheInvariants", (on(engine, request),), {})
    run_state_machine_as_test(
        seed(part)(machine),
        settings=settings(max_examples=examples, stateful_step_count=40, deadline=None),
    )
