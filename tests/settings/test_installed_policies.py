"""Policies of installed packages go by their names wherever policies are named."""

from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent

import pytest
from installed_packages import install_package

import cutbank
from cutbank import InvalidSettingError, load_settings
from cutbank.adapters.settings import policy_catalog
from cutbank.domain.policies.catalog import ALIASES, DEFAULT_POLICY, POLICIES

SHAPE = '''
    """Keeps the newest blocks."""
    from dataclasses import dataclass
    from typing import Any, ClassVar
    from cutbank.domain.settings import setting
    from cutbank.domain.policies.policy import check_settings
    from cutbank.domain.window import Plan

    @dataclass(frozen=True)
    class Policy:
        name: ClassVar[str] = "{name}"
        alias: ClassVar[str] = "{alias}"
        presets: ClassVar[dict[str, dict[str, Any]]] = {{"short": {{"keep": 2}}}}
        keep: int = setting(20, unit="blocks", least=1, help="stay word for word")

        def __post_init__(self):
            check_settings(self)

        def plan(self, window):
            items = window.open_to_cut
            return Plan(items[-self.keep].position, "so many blocks", 500)
'''

Install = Callable[..., None]


def source(name: str, alias: str) -> str:
    return dedent(SHAPE).format(name=name, alias=alias)


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))
    policy_catalog.list_package_policies.cache_clear()

    def installing(package: str, code: str, name: str) -> None:
        install_package(site, package, f"[cutbank.policies]\n{name} = {package}:Policy\n", code)
        policy_catalog.list_package_policies.cache_clear()

    yield installing
    policy_catalog.list_package_policies.cache_clear()


def test_a_policy_of_a_package_is_found_by_name_alias_and_preset(
    install: Install, session: cutbank.StoredSession
) -> None:
    install("silt_one", source("silt", "mud"), "silt")

    silt = policy_catalog.get_policy("silt", keep="7")

    assert silt.name == "silt"
    assert silt == policy_catalog.get_policy("mud", keep=7)
    assert policy_catalog.get_policy("mud@short") == type(silt)(keep=2)  # type: ignore[call-arg]
    assert policy_catalog.find_package(type(silt)) == "silt_one 1.2"
    assert list(policy_catalog.list_policies()) == [*POLICIES, "silt"]
    with pytest.raises(InvalidSettingError, match="silt has no preset @long; it has @short"):
        policy_catalog.get_policy("silt@long")

    for _ in range(20):
        session.append(cutbank.Block.user("why? " * 100), cutbank.Block.assistant("silt " * 100))
    outcome = session.compact("mud@short")
    assert (outcome.compacted, outcome.policy) == (True, "silt")
    assert len(session.view().entries) == 2


def test_settings_name_it_and_mistakes_in_them_are_named(install: Install, tmp_path: Path) -> None:
    install("silt_four", source("silt", "mud"), "silt")
    install("wreck", "import nothing_of_that_name", "broken")
    file = tmp_path / "settings.toml"

    def loaded(text: str) -> object:
        file.write_text(f"[compaction]\n{text}\n", encoding="utf-8")
        return load_settings(file, {}).policy

    named = policy_catalog.get_policy("silt", keep="9")
    assert loaded('policy = "silt@short"\nsettings = {keep = 9}') == named
    for text, wrong in (
        ('policy = "silt@shrt"', "'shrt' is no preset of silt; did you mean short?"),
        ('policy = "sillt"', "which is no policy; did you mean silt?"),
        ('policy = "broken"', "; policy 'broken' of the package wreck 1.2: it cannot be"),
        ('policy = "silt"\nsettings = {keeps = 3}', "keeps is no setting of silt"),
        ('policy = "silt@short"\nsettings = {keep = 0}', "it takes a whole number of blocks from"),
    ):
        with pytest.raises(InvalidSettingError) as refused:
            loaded(text)
        assert wrong in str(refused.value)
        assert "\n" not in str(refused.value)
        assert f"{file}:" in str(refused.value)


BROKEN = [
    ("import nothing_of_that_name", "cannot be loaded: ModuleNotFoundError: No module named"),
    ("raise SystemExit(3)", "it cannot be loaded: SystemExit: 3"),
    ("Policy = 5", "5 is not a @dataclass"),
    ("class Policy: pass", "Policy is not a @dataclass(frozen=True)"),
    (source("other", "mud"), "it calls itself 'other'; name its entry point so"),
    (source("broken", "Mud!"), "its alias is 'Mud!'"),
    (source("broken", "mud").replace("plan", "plane"), "it has no method plan(window)"),
    (source("broken", "mud").replace('"keep": 2', '"keep": 0'), "its preset @short is refused"),
    (source("broken", "mud").replace('"keep": 2', '"kept": 2'), "has no setting 'kept'"),
    (source("broken", "mud").replace("least=1", "least=50"), "keep is 20 by default; it takes"),
    (source("broken", "mud").replace("help=", "help='' and "), "keep has no help of one line"),
    (source("broken", "mud").replace("setting(", "dict(default="), "cannot be loaded: ValueError"),
    (source("broken", DEFAULT_POLICY), f"'{DEFAULT_POLICY}' is a name of cutbank's own"),
    (source("broken", next(iter(ALIASES))), "is a name of cutbank's own"),
]


def test_a_broken_package_is_one_line_and_breaks_no_other(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, (code, wrong) in enumerate(BROKEN):
        # Entry points of one name in several packages are refused: each has a name of its own.
        package, name = f"wreck_{number}", f"broken-{number}"
        install(package, code.replace('"broken"', f'"{name}"'), name)

        with pytest.raises(InvalidSettingError) as refused:
            policy_catalog.get_policy(name)

        said = str(refused.value)
        assert said.startswith(f"policy '{name}' of the package {package} 1.2: ")
        assert wrong in said
        assert "\n" not in said

    install("sound", source("sound", "whole"), "sound")
    assert policy_catalog.get_policy("whole").name == "sound"
    with pytest.raises(InvalidSettingError, match=r"no policy 'basalt'; .* wreck_0 1.2"):
        policy_catalog.get_policy("basalt")

    def ask(**_: str) -> None:
        raise AssertionError("packages were asked")

    policy_catalog.list_package_policies.cache_clear()
    monkeypatch.setattr("importlib.metadata.entry_points", ask)
    assert policy_catalog.get_policy(DEFAULT_POLICY).name == DEFAULT_POLICY
