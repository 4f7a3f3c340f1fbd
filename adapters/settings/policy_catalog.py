"""Every policy that can be named: cutbank's own, and those of packages that are installed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import TYPE_CHECKING, Any

from ...domain.errors import InvalidSettingError
from ...domain.policies.catalog import ALIASES, POLICIES, alias_of, unknown, with_preset
from ...domain.policies.contract.shape import faults_of
from ...domain.policies.policy import Policy

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "cutbank.policies"
"""The entry points by which a package says that it brings policies."""


@dataclass(frozen=True, slots=True)
class Brought:
    """A policy that a package brings, or why it cannot be used."""

    entry: str
    package: str
    """Its name and version."""
    policy: type[Policy] | None = None
    wrong: str | None = None

    def __str__(self) -> str:
        wrong = f": {self.wrong}" if self.wrong else ""
        return f"policy {self.entry!r} of the package {self.package}{wrong}"

    def refused(self, wrong: str) -> "Brought":
        return Brought(self.entry, self.package, wrong=wrong)


def policy_named(text: str, settings: Mapping[str, Any]) -> Policy:
    """The policy `NAME[@PRESET]`, by its name or alias, with these settings over the preset's."""
    name, _, preset = text.partition("@")
    return with_preset(policy_class_named(name), preset, settings)


def policy_class_named(name: str) -> type[Policy]:
    """The policy of that name or alias; packages are asked only where it is none of ours."""
    if own := POLICIES.get(ALIASES.get(name, name)):
        return own
    known = policies()
    found = next((one for one in known.values() if name in _words(one)), None)
    if found is not None:
        return found
    for brought in unusable():
        if brought.entry == name:
            raise InvalidSettingError(f"{brought}")
    raise unknown(name, known, *map(str, unusable()))


def policies() -> Mapping[str, type[Policy]]:
    """All that can be used, by name: ours first."""
    return POLICIES | {one.policy.name: one.policy for one in brought() if one.policy}


def names() -> list[str]:
    """Every name and alias."""
    known = policies().values()
    return [one.name for one in known] + [alias for one in known if (alias := alias_of(one))]


def package_of(policy: type[Policy]) -> str | None:
    """The package that brings the policy; None of one of ours."""
    return next((one.package for one in brought() if one.policy is policy), None)


def unusable() -> tuple[Brought, ...]:
    """What packages bring and cannot be used."""
    return tuple(one for one in brought() if one.wrong)


@cache
def brought() -> tuple[Brought, ...]:
    """What installed packages bring. They are asked once in a process, when first needed."""
    from importlib.metadata import entry_points  # noqa: PLC0415 - it takes its time

    points = sorted(entry_points(group=GROUP), key=lambda point: (_package(point), point.name))
    return _told_apart([_loaded(point) for point in points])


def _loaded(point: "EntryPoint") -> Brought:
    found = Brought(point.name, _package(point))
    try:
        policy = point.load()
        faults = list(faults_of(policy))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a package does on import
        return found.refused(f"it cannot be loaded: {_in_one_line(error)}")
    if not faults and policy.name != point.name:
        faults = [f"it calls itself {policy.name!r}; name its entry point so"]
    if faults:
        return found.refused("; ".join(faults))
    return Brought(point.name, found.package, policy)


def _told_apart(candidates: list[Brought]) -> tuple[Brought, ...]:
    """Without those that go by a name that another one has: nobody could say which is meant."""
    clashes: dict[int, str] = {}
    for at, one in enumerate(candidates):
        for word in _words(one.policy) if one.policy else ():
            if word in POLICIES or word in ALIASES:
                clashes[at] = f"{word!r} is a name of cutbank's own {ALIASES.get(word, word)}"
    for (at, one), (other_at, other) in combinations(enumerate(candidates), 2):
        if one.policy and other.policy and (shared := _shared(one.policy, other.policy)):
            clashes.setdefault(at, f"{shared!r} is a name of {_plain(other)} as well")
            clashes.setdefault(other_at, f"{shared!r} is a name of {_plain(one)} as well")
    return tuple(
        one.refused(clashes[at]) if at in clashes else one for at, one in enumerate(candidates)
    )


def _shared(one: type[Policy], other: type[Policy]) -> str | None:
    return next((word for word in _words(one) if word in set(_words(other))), None)


def _words(policy: type[Policy]) -> Iterator[str]:
    yield policy.name
    if alias := alias_of(policy):
        yield alias


def _plain(one: Brought) -> str:
    return f"{one.entry!r} of {one.package}"


def _package(point: "EntryPoint") -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist else "of no name"


def _in_one_line(error: BaseException) -> str:
    said = " ".join(str(error).split())
    return f"{type(error).__name__}: {said}" if said else type(error).__name__
