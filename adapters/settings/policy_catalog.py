"""Finds policies by name: cutbank's own, and those of installed packages."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from ...domain.errors import InvalidSettingError, describe_error
from ...domain.policies.catalog import (
    ALIASES,
    POLICIES,
    build_with_preset,
    find_alias,
)
from ...domain.policies.contract import find_shape_faults
from ...domain.policies.policy import Policy

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_ENTRY_POINT_GROUP = "cutbank.policies"
"""The entry points with which packages offer policies."""


@dataclass(frozen=True, slots=True)
class PackagePolicy:
    """A policy of a package, or why it cannot be used."""

    entry: str
    package: str
    """The package's name and version."""
    policy: type[Policy] | None = None
    problem: str | None = None

    def __str__(self) -> str:
        wrong = f": {self.problem}" if self.problem else ""
        return f"policy {self.entry!r} of the package {self.package}{wrong}"


def get_policy(name: str, /, **settings: Any) -> Policy:
    """Return the policy `NAME[@PRESET]`, by name or alias; `settings` override the preset's.

    Raises InvalidSettingError for a policy, preset or setting that does not exist, or a bad value.
    """
    name, _, preset = name.partition("@")
    return build_with_preset(find_policy_class(name), preset, settings)


def find_policy_class(name: str) -> type[Policy]:
    """Return the policy of that name or alias; load packages only for names that are not ours."""
    if own := POLICIES.get(ALIASES.get(name, name)):
        return own
    if found := list_policy_names().get(name):
        return found
    for brought in list_unusable():
        if brought.entry == name:
            raise InvalidSettingError(f"{brought}")
    known = f"there is no policy {name!r}; there are {', '.join(list_policy_names())}"
    raise InvalidSettingError("; ".join([known, *map(str, list_unusable())]))


def list_policies() -> Mapping[str, type[Policy]]:
    return POLICIES | {one.policy.name: one.policy for one in list_package_policies() if one.policy}


def list_policy_names() -> dict[str, type[Policy]]:
    """Return each policy by its name and by its alias."""
    known = list_policies().values()
    aliases = {alias: one for one in known if (alias := find_alias(one))}
    return {one.name: one for one in known} | aliases


def find_package(policy: type[Policy]) -> str | None:
    """Return the package of a policy; None for our own."""
    return next((one.package for one in list_package_policies() if one.policy is policy), None)


def list_unusable() -> tuple[PackagePolicy, ...]:
    """Return the packages' policies that cannot be used."""
    return tuple(one for one in list_package_policies() if one.problem)


@cache
def list_package_policies() -> tuple[PackagePolicy, ...]:
    """Return the policies of installed packages, loaded once per process, when first needed."""
    from importlib.metadata import entry_points  # noqa: PLC0415 - it takes time

    points = sorted(
        entry_points(group=_ENTRY_POINT_GROUP), key=lambda point: (_package_name(point), point.name)
    )
    return tuple(_load(point) for point in points)


def _load(point: "EntryPoint") -> PackagePolicy:
    found = PackagePolicy(point.name, _package_name(point))
    try:
        policy = point.load()
        faults = list(find_shape_faults(policy))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - imports may raise anything
        return replace(found, problem=f"it cannot be loaded: {describe_error(error)}")
    if not faults and policy.name != point.name:
        faults = [f"it calls itself {policy.name!r}; name its entry point so"]
    for word in () if faults else filter(None, (policy.name, find_alias(policy))):
        if word in POLICIES or word in ALIASES:
            faults.append(f"{word!r} is a name of cutbank's own {ALIASES.get(word, word)}")
    if faults:
        return replace(found, problem="; ".join(faults))
    return replace(found, policy=policy)


def _package_name(point: "EntryPoint") -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist else "of no name"
