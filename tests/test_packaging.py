"""What is installed is all of cutbank, and nothing but cutbank."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RINGS = ("domain", "projections", "adapters")

AN_INDEX = re.compile(r"(?<![\w.-])[\w.-]*(?:pypi|pythonhosted|devpi)[\w.-]*\.(?:org|net)\b")
SOMEBODY = r"(?!(?:you|me|user|agent|alice|bob|ada|dev)\b)[A-Za-z0-9._-]+"
A_HOME = re.compile(
    rf"(?<![\w.$}}])(?:/root[/]|/(?:home|Users)/{SOMEBODY})"
    rf"|[A-Z]:\\{{1,2}}Users\\{{1,2}}{SOMEBODY}",
)


def run(*command: str | Path, cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
    """Run a command, and return its output; on failure show what it said."""
    words = [str(word) for word in command]
    done = subprocess.run(
        words, capture_output=True, check=False, cwd=cwd, encoding="utf-8", env=env
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def tracked() -> list[str]:
    if not (ROOT / ".git").exists() or not (git := shutil.which("git")):
        pytest.skip("not a git checkout, or no git to ask what is tracked")
    files = run(git, "ls-files", "-z", cwd=ROOT).split("\0")
    return [file for file in files if (ROOT / file).is_file()]


def test_every_file_of_the_package_is_packaged(tracked: list[str]) -> None:
    setuptools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    ours = [Path(name) for name in tracked if name.split("/")[0] in RINGS]
    folders = {".".join(("cutbank", *file.parts[:-1])) for file in ours if file.suffix == ".py"}
    mapped = {path.replace("/", "."): name for name, path in setuptools["package-dir"].items()}
    folders = {mapped.get(folder.removeprefix("cutbank."), folder) for folder in folders}
    data = {
        path.relative_to(ROOT)
        for package, patterns in setuptools["package-data"].items()
        for pattern in patterns
        for path in ROOT.joinpath(*package.split(".")[1:]).glob(pattern)
    }

    assert sorted(setuptools["packages"]) == sorted({"cutbank"} | folders)
    assert {file for file in ours if file.suffix != ".py"} == data - {Path("py.typed")}


def find_leaks(text: str) -> list[str]:
    return [leak[0] for pattern in (AN_INDEX, A_HOME) for leak in pattern.finditer(text)]


def test_the_tree_names_no_index_and_nobodys_home(tracked: list[str]) -> None:
    texts = [
        f"--index-url https://{'pypi'}.org/simple",
        f"see /{'home'}/maria/cutbank",
        f"cd /{'Users'}/maria/cutbank",
        f"C:\\{'Users'}\\maria\\cutbank",
        f'"C:\\\\{"Users"}\\\\maria\\\\cutbank"',
        f"/{'root'}/cutbank",
    ]
    assert not [text for text in texts if not find_leaks(text)]

    found = [
        f"{file}: {name}"
        for file in tracked
        for name in find_leaks((ROOT / file).read_text(encoding="utf-8", errors="replace"))
    ]

    assert not found, "\n".join(found)


@pytest.mark.slow
def test_the_wheel_runs_on_its_own(tmp_path: Path) -> None:
    # A copy of the checkout holds nothing that was made before.
    made = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "__pycache__")
    copy, dist = shutil.copytree(ROOT, tmp_path / "copy", ignore=made), tmp_path / "dist"
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", dist, cwd=copy)
    (wheel,) = dist.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {"cutbank/py.typed", "cutbank/adapters/analysis/templates/base.html"} <= set(names)
    assert not [name for name in names if "tests" in name or "/test_" in name]
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"cutbank"}

    run(sys.executable, "-m", "venv", tmp_path / "venv")
    python = tmp_path / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
    run(python, "-m", "pip", "install", "--require-hashes", "-r", ROOT / "requirements.lock")
    run(python, "-m", "pip", "install", "--no-deps", wheel)

    elsewhere, home = tmp_path / "elsewhere", tmp_path / "home"
    elsewhere.mkdir()
    home.mkdir()
    # Nothing may let the checkout be found.
    hints = ("PYTHON", "COVERAGE", "VIRTUAL_ENV", "XDG_")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(hints)}
    said = run(
        *(python.with_name("cutbank"), "demo", "--db", tmp_path / "x.db"),
        cwd=elsewhere,
        env=environment | {"HOME": str(home)},
    )
    assert "recall" in said
