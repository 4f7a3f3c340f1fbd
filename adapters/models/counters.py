"""Every counter by name."""

from ...domain.counting.counter import CharacterEstimate, Counter
from ...domain.counting.estimators import ESTIMATORS
from ...domain.errors import InvalidSettingError
from .vocabularies import VOCABULARIES, TiktokenCounter, load_encoding


def get_counter(name: str, model: str | None = None) -> Counter:
    """The counter of that name; the model tells whose rule images are counted by.

    Raises NotFoundError where its vocabulary is not on this machine.
    """
    if name == CharacterEstimate.name:
        return CharacterEstimate()
    if name in VOCABULARIES:
        load_encoding(name)  # whether it is at hand is better said now than at the first block
        return TiktokenCounter(name, model)
    if name in ESTIMATORS:
        return ESTIMATORS[name]
    known = ", ".join((CharacterEstimate.name, *VOCABULARIES, *ESTIMATORS))
    raise InvalidSettingError(f"there is no counter {name!r}; there are {known}")
