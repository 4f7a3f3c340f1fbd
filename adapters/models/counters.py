"""Makes token counters by name."""

from ...domain.counting.estimators import ESTIMATORS
from ...domain.errors import InvalidSettingError
from ...domain.token_estimate import CharacterEstimate, Counter
from .vocabularies import VOCABULARIES, TiktokenCounter, load_encoding


def get_counter(name: str, model: str | None = None) -> Counter:
    """Return the counter of that name; `model` decides how images are counted.

    Raises NotFoundError if its vocabulary is not on this machine.
    """
    if name == CharacterEstimate.name:
        return CharacterEstimate()
    if name in VOCABULARIES:
        load_encoding(name)  # report a missing vocabulary now, not at the first block
        return TiktokenCounter(name, model)
    if name in ESTIMATORS:
        return ESTIMATORS[name]
    known = ", ".join((CharacterEstimate.name, *VOCABULARIES, *ESTIMATORS))
    raise InvalidSettingError(f"there is no counter {name!r}; there are {known}")
