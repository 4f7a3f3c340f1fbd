"""Every setting that is in effect: its value, its unit, what it is for, and where it came from."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ...domain.policies.policy import Policy, Setting, settings_of
from ...domain.policies.scored_pruning import ScoredPruning
from .mistakes import in_words
from .origin import UNSET, Origin
from .section import Section, Shape, Told, told
from .settings import Settings
from .toml_lines import Path


@dataclass(frozen=True, slots=True)
class Listed:
    """One setting, as `cutbank settings` shows it."""

    path: Path
    value: Any
    default: Any
    unit: str
    takes: str
    help: str
    origin: Origin

    @property
    def name(self) -> str:
        return in_words(self.path)


def listed(settings: Settings) -> Iterator[Listed]:
    """All of them, in the order in which they are declared."""
    return _below(settings, settings, ())


def _below(settings: Settings, section: Section, above: Path) -> Iterator[Listed]:
    for name in type(section).model_fields:
        about = told(type(section), name)
        value = getattr(section, name)
        path = (*above, name)
        if path == ("compaction", "settings"):
            yield from _of_policy(settings, path)
        elif path == ("compaction", "policy") and value != settings.policy_name:
            about_policy = _as_listed(settings, path, about, settings.policy_name)
            yield replace(about_policy, origin=_of_context(settings))
        elif isinstance(value, Section):
            yield from _below(settings, value, path)
        elif about.is_by_name and value:
            for key, one in value.items():
                yield from _below(settings, one, (*path, key))
        elif about.shape is Shape.TABLES and value:
            for index, one in enumerate(value):
                yield from _below(settings, one, (*path, index))
        else:
            yield _as_listed(settings, path, about, value)


def _as_listed(settings: Settings, path: Path, about: Told, value: Any) -> Listed:
    return Listed(
        path=path,
        value=plain(value),
        default=plain(about.default),
        unit=about.scalar.unit,
        takes=about.takes,
        help=about.scalar.help,
        origin=settings.origin(*path),
    )


def _of_context(settings: Settings) -> Origin:
    """Where the section stands, by any of its settings."""
    assert settings.context is not None, "nothing else goes before the default policy"
    given = settings.context.model_fields_set
    return next((settings.origin("context", name) for name in sorted(given)), UNSET)


def _of_policy(settings: Settings, above: Path) -> Iterator[Listed]:
    """The policy's own settings, those that nobody gave included."""
    policy = settings.policy
    for one in settings_of(policy):
        path = (*above, one.name)
        yield Listed(
            path=path,
            value=getattr(policy, one.name),
            default=_default(one),
            unit=one.unit,
            takes=one.takes,
            help=one.help,
            origin=_origin_of(settings, policy, path),
        )


def _origin_of(settings: Settings, policy: Policy, path: Path) -> Origin:
    """Of a policy's setting: [context] says some of scored-pruning's."""
    origin = settings.origin(*path)
    if origin == UNSET and isinstance(policy, ScoredPruning):
        return settings.origin("context", path[-1])
    return origin


def _default(one: Setting) -> Any:
    return one.default if isinstance(one.default, int | float | str) else None


def plain(value: Any) -> Any:
    """A value as JSON has it."""
    match value:
        case tuple():
            return [plain(one) for one in value]
        case Mapping():
            return {key: plain(one) for key, one in value.items()}
        case str():  # also of an enumeration
            return str(value)
        case float() if value.is_integer():
            return int(value)  # 120, and not 120.0
        case _:
            return value
