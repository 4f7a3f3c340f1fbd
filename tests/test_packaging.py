"""What is installed is all of cutbank, and nothing but cutbank."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

import cutbank

ROOT = Path(__file__).parents[1]
RINGS = ("domain", "projections", "adapters")

# Put together here, so that this file does not hold what it looks for.
INDEX_HOSTS = [
    f"{name}.{end}"
    for name, end in [
        ("pypi", "org"),
        ("pypi.python", "org"),
        ("pythonhosted", "org"),
        ("devpi", "net"),
    ]
]
SOMEBODY = r"(?!(?:you|me|user|agent|alice|bob|ada|dev)\b)[A-Za-z0-9._-]+"
A_HOME = re.compile(
    rf"(?<![\w.$}}])(?:/root[/]|/(?:home|Users)/{SOMEBODY})"
    rf"|[A-Z]:\\{{1,2}}Users\\{{1,2}}{SOMEBODY}",
)


def test_every_folder_of_code_is_packaged() -> None:
    folders = {file.parent for ring in RINGS for file in (ROOT / ring).rglob("*.py")}
    expected = {".".join(("cutbank", *folder.relative_to(ROOT).parts)) for folder in folders}

    with (ROOT / "pyproject.toml").open("rb") as file:
        listed = tomllib.load(file)["tool"]["setuptools"]["packages"]

    assert sorted(listed) == sorted({"cutbank"} | expected)


def test_every_file_that_is_no_code_is_packaged() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        globs = tomllib.load(file)["tool"]["setuptools"]["package-data"]
    packaged = {
        path.relative_to(ROOT).as_posix()
        for package, patterns in globs.items()
        for pattern in patterns
        for path in ROOT.joinpath(*package.split(".")[1:]).glob(pattern)
    }

    tracked = {name for name in tracked_files() if name.split("/")[0] in RINGS}

    assert {name for name in tracked if not name.endswith(".py")} == packaged - {"py.typed"}


def test_the_tree_names_no_index_and_nobodys_home() -> None:
    found = [
        f"{file}: {name}"
        for file in tracked_files()
        for name in leaks((ROOT / file).read_text(encoding="utf-8", errors="replace"))
    ]

    assert not found, "\n".join(found)


def test_a_leak_is_seen() -> None:
    texts = [
        f"--index-url https://{INDEX_HOSTS[0]}/simple",
        f"see /{'home'}/maria/cutbank",
        f"cd /{'Users'}/maria/cutbank",
        f"C:\\{'Users'}\\maria\\cutbank",
        f'"C:\\\\{"Users"}\\\\maria\\\\cutbank"',
        f"/{'root'}/cutbank",
    ]

    assert not [text for text in texts if not leaks(text)]


@pytest.mark.slow
def test_the_wheel_runs_on_its_own(tmp_path: Path) -> None:
    wheel = built_wheel(tmp_path)
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {"cutbank/py.typed", "cutbank/adapters/analysis/pages/base.html"} <= set(names)
    assert not [name for name in names if "tests" in name or "/test_" in name]
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"cutbank"}

    python = empty_venv(tmp_path / "venv")
    lock = ROOT / "requirements.lock"
    run(python, "-m", "pip", "install", "--require-hashes", "-r", lock)
    run(python, "-m", "pip", "install", "--no-deps", wheel)

    elsewhere, home = tmp_path / "elsewhere", tmp_path / "home"
    elsewhere.mkdir()
    home.mkdir()
    done = run(
        *(python.with_name("cutbank"), "demo", "--db", tmp_path / "x.db"),
        cwd=elsewhere,
        env=without_python(os.environ) | {"HOME": str(home)},
    )
    assert "recall" in done.stdout


def tracked_files() -> list[str]:
    if not (ROOT / ".git").exists() or not (git := shutil.which("git")):
        pytest.skip("not a git checkout, or no git to ask what is tracked")
    files = run(git, "ls-files", "-z", cwd=ROOT).stdout.split("\0")
    return [file for file in files if (ROOT / file).is_file()]


def leaks(text: str) -> list[str]:
    hosts = [host for host in INDEX_HOSTS if host in text]
    return hosts + [home[0] for home in A_HOME.finditer(text)]


def built_wheel(tmp_path: Path) -> Path:
    """The wheel of a copy of the checkout, which holds nothing made before."""
    made = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "__pycache__")
    copy = shutil.copytree(ROOT, tmp_path / "copy", ignore=made)
    dist = tmp_path / "dist"
    build = ("-m", "build", "--wheel", "--no-isolation", "--outdir", dist)
    run(sys.executable, *build, cwd=copy)
    (wheel,) = dist.glob("*.whl")
    return wheel


def empty_venv(folder: Path) -> Path:
    run(sys.executable, "-m", "venv", folder)
    return folder / ("Scripts" if os.name == "nt" else "bin") / "python"


def without_python(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment, but for what would let the checkout be found."""
    return {
        name: value
        for name, value in environment.items()
        if not name.startswith(("PYTHON", "COVERAGE", "VIRTUAL_ENV", "XDG_"))
    }


def run(
    *command: str | Path,
    cwd: Path | None = None,
    env: dict[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a command, and on failure show what it said."""
    done = subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        check=False,
        cwd=cwd,
        encoding="utf-8",
        env=env,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done


def test_the_package_lists_its_public_names_and_its_version() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]

    assert cutbank.__version__ == declared
    assert set(dir(cutbank)) == {*cutbank.__all__, "__version__"}
