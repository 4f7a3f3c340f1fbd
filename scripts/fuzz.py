"""Looks for bytes on which a reader fails, guided by what the reader's code does with them.

    python scripts/fuzz.py [FORMAT ...] [--minutes N] [--seed N] [--findings FOLDER]

Each format has N minutes (1, unless it is said), and begins with the samples of the tests and,
where CUTBANK_SESSIONS names a folder of real transcripts, with the small ones of those. What is
found is kept in the folder, a file each, and makes the script fail: turn it into a sample, or a
test of that reader. Needs atheris, which there is for Linux on x86-64.
"""

import argparse
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from random import Random
from shutil import rmtree
from tempfile import TemporaryDirectory, mkdtemp

TESTS = Path(__file__).parents[1] / "tests" / "support"
LONGEST_INPUT = 200_000
SLOWEST_S = 30
MARK = b"\n-- member of a folder: "
"""Stands before each file's name where a transcript is a folder: a fuzzer knows only bytes."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("formats", nargs="*", metavar="FORMAT")
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0, help="0, unless it is said: at random")
    parser.add_argument("--findings", type=Path, default=Path("fuzz-findings"))
    parser.add_argument("--in-this-process", action="store_true", help=argparse.SUPPRESS)
    told = parser.parse_args()
    try:
        import atheris  # noqa: F401, PLC0415 - not everywhere
    except ImportError:
        sys.exit("fuzzing needs atheris, which there is for Linux on x86-64 with Python below 3.14")
    if told.in_this_process:
        fuzz(told.formats[0], told)
    sys.path.insert(0, str(TESTS))
    from cutbank.adapters.transcripts.formats.catalog import FORMATS  # noqa: PLC0415

    if unknown := [name for name in told.formats if name not in FORMATS]:
        parser.error(f"{unknown[0]!r} is not known: choose of {', '.join(FORMATS)}")
    failed = [name for name in told.formats or FORMATS if not survives(name, told)]
    if failed:
        sys.exit(f"failed: {', '.join(failed)}; what did it is in {told.findings}")


def survives(name: str, told: argparse.Namespace) -> bool:
    """Fuzz one format, in a process of its own: the fuzzer ends the process that it runs in."""
    told.findings.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, __file__, name, "--in-this-process"]
    command += ["--minutes", str(told.minutes), "--seed", str(told.seed)]
    command += ["--findings", str(told.findings)]
    with TemporaryDirectory() as folder:
        # The fuzzer ends its process without a word to Python: nobody would clear up there.
        said = {**os.environ, "TMPDIR": folder}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=said)
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    print(f"{name}: {lines[-1] if lines else 'nothing was said'}", flush=True)
    if done.returncode:
        # The fuzzer speaks by the one, and Python of the exception by the other.
        print("\n".join([*done.stdout.strip().splitlines()[-40:], *lines[-5:]]), flush=True)
    return done.returncode == 0


def fuzz(name: str, told: argparse.Namespace) -> None:
    """Try bytes on one format until time is up, or one of its rules is broken; never returns."""
    import atheris  # noqa: PLC0415 - as above

    sys.path.insert(0, str(TESTS))
    # pyright: ignore below: atheris has no types, and the tests are found by the path above.
    readers = ["cutbank.adapters.transcripts.formats"]
    with atheris.instrument_imports(include=readers):  # pyright: ignore[reportAttributeAccessIssue]
        from cutbank.adapters.transcripts.formats.catalog import FORMATS, recognize_format  # noqa: PLC0415
        from cutbank.adapters.transcripts.formats.source import TranscriptSource  # noqa: PLC0415
    from mutations import mutated  # noqa: PLC0415 # pyright: ignore[reportMissingImports]
    from reading_rules import check_read  # noqa: PLC0415 # pyright: ignore[reportMissingImports]
    from transcripts import real, samples  # noqa: PLC0415 # pyright: ignore[reportMissingImports]

    found = FORMATS[name]
    small = [path for path in real() if TranscriptSource(path).size <= LONGEST_INPUT]
    own = [
        path for path in [*samples(), *small] if recognize_format(TranscriptSource(path)) is found
    ]
    if not own:
        sys.exit(f"{name}: there is no sample to begin with")

    folder = mkdtemp()
    corpus, place = Path(folder, "corpus"), Path(folder, own[0].name)
    corpus.mkdir()
    for number, path in enumerate(own):
        (corpus / f"{number}").write_bytes(folded(path))

    def once(data: bytes) -> None:
        unfold(data, place, is_folder=own[0].is_dir())
        if recognize_format(TranscriptSource(place)) is found:
            check_read(found, place)

    def mutate(data: bytes, most: int, seed: int) -> bytes:
        choose = Random(seed)  # noqa: S311 - to choose, and not to hide
        if choose.randrange(4):
            return mutated(bytes(data), choose)[:most]
        changed: bytes = atheris.Mutate(data, most)
        return changed

    prefix = told.findings.resolve() / f"{name}-"
    words = [
        f"-max_total_time={max(1, round(60 * told.minutes))}",
        f"-seed={told.seed}",
        f"-max_len={LONGEST_INPUT}",
        f"-timeout={SLOWEST_S}",
        f"-artifact_prefix={prefix}",
        "-rss_limit_mb=2048",
        "-len_control=0",
        "-verbosity=1",
    ]
    atheris.Setup([sys.argv[0], *words, str(corpus)], once, custom_mutator=mutate)
    atheris.Fuzz()


def folded(path: Path) -> bytes:
    """A transcript as bytes, whatever number of files it is."""
    if path.is_file():
        return path.read_bytes()
    return b"".join(
        MARK + file.relative_to(path).as_posix().encode() + b"\n" + file.read_bytes()
        for file in sorted(path.rglob("*"))
        if file.is_file()
    )


def unfold(data: bytes, place: Path, *, is_folder: bool) -> None:
    """Write what is to be read to a place."""
    if not is_folder:
        place.write_bytes(data)
        return
    rmtree(place, ignore_errors=True)
    place.mkdir()
    for part in data.split(MARK)[1:]:
        name, _, content = part.partition(b"\n")
        file = Path(os.path.normpath(place / os.fsdecode(name[:100].replace(b"\0", b""))))
        if file.is_relative_to(place) and file != place and not file.exists():
            with suppress(OSError):  # a name that is too long, or below a file
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)


if __name__ == "__main__":
    main()
