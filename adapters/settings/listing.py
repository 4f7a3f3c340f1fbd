"""Lists every setting in effect: value, unit, purpose, and origin."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ...domain.policies.policy import Policy, PolicySetting, list_settings
from ...domain.policies.scored_pruning import ScoredPruning
from .mistakes import format_path
from .origin import UNSET, SettingOrigin
from .section import Section, SettingInfo, SettingShape, describe_setting
from .settings import Settings
from .toml_lines import SettingPath


@dataclass(frozen=True, slots=True)
class ListedSetting:
    path: SettingPath
    value: Any
    default: Any
    unit: str
    accepted_values: str
    help: str
    origin: SettingOrigin

    @property
    def name(self) -> str:
        return format_path(self.path)


def list_effective_settings(settings: Settings) -> Iterator[ListedSetting]:
    """Return all settings in the order of their declaration."""
    return _list_section(settings, settings, ())


def _list_section(
    settings: Settings, section: Section, above: SettingPath
) -> Iterator[ListedSetting]:
    for name in type(section).model_fields:
        about = describe_setting(type(section), name)
        value = getattr(section, name)
        path = (*above, name)
        if path == ("compaction", "settings"):
            yield from _list_policy_settings(settings, path)
        elif path == ("compaction", "policy") and value != settings.policy_name:
            about_policy = _make_listed(settings, path, about, settings.policy_name)
            yield replace(about_policy, origin=_find_context_origin(settings))
        elif isinstance(value, Section):
            yield from _list_section(settings, value, path)
        elif about.is_by_name and value:
            for key, one in value.items():
                yield from _list_section(settings, one, (*path, key))
        elif about.shape is SettingShape.TABLES and value:
            for index, one in enumerate(value):
                yield from _list_section(settings, one, (*path, index))
        else:
            yield _make_listed(settings, path, about, value)


def _make_listed(
    settings: Settings, path: SettingPath, about: SettingInfo, value: Any
) -> ListedSetting:
    return ListedSetting(
        path=path,
        value=to_json_value(value),
        default=to_json_value(about.default),
        unit=about.scalar.unit,
        accepted_values=about.accepted_values,
        help=about.scalar.help,
        origin=settings.find_origin(*path),
    )


def _find_context_origin(settings: Settings) -> SettingOrigin:
    assert settings.context is not None, "nothing else goes before the default policy"
    given = settings.context.model_fields_set
    return next((settings.find_origin("context", name) for name in sorted(given)), UNSET)


def _list_policy_settings(settings: Settings, above: SettingPath) -> Iterator[ListedSetting]:
    policy = settings.policy
    for one in list_settings(policy):
        path = (*above, one.name)
        yield ListedSetting(
            path=path,
            value=getattr(policy, one.name),
            default=_to_default(one),
            unit=one.unit,
            accepted_values=one.accepted_values,
            help=one.help,
            origin=_find_origin(settings, policy, path),
        )


def _find_origin(settings: Settings, policy: Policy, path: SettingPath) -> SettingOrigin:
    """Return the origin of a policy's setting; [context] may set some of scored-pruning's."""
    origin = settings.find_origin(*path)
    if origin == UNSET and isinstance(policy, ScoredPruning):
        return settings.find_origin("context", path[-1])
    return origin


def _to_default(one: PolicySetting) -> Any:
    return one.default if isinstance(one.default, int | float | str) else None


def to_json_value(value: Any) -> Any:
    match value:
        case tuple():
            return [to_json_value(one) for one in value]
        case Mapping():
            return {key: to_json_value(one) for key, one in value.items()}
        case str():  # including enumerations
            return str(value)
        case float() if value.is_integer():
            return int(value)  # 120 instead of 120.0
        case _:
            return value
