"""Makes wrong what a transcript says: each field in turn gets values of all the wrong types."""

from collections.abc import Iterator
from typing import Any

WRONG: tuple[Any, ...] = (None, True, 7, -1.5, "", "x", [], [7], {}, {"x": {}}, 10**30)


def mutants(value: Any) -> Iterator[Any]:
    """Copies of the value, each wrong at one place."""
    match value:
        case dict():
            for name, inner in value.items():
                yield {other: one for other, one in value.items() if other != name}
                for wrong in WRONG:
                    yield value | {name: wrong}
                for mutant in mutants(inner):
                    yield value | {name: mutant}
        case list():
            for index, inner in enumerate(value):
                for wrong in (*WRONG, *mutants(inner)):
                    yield [*value[:index], wrong, *value[index + 1 :]]
        case _:
            pass
