"""Measures the Python client beside redis-py, bare RESP and a bare copy, all in one run.

    python3 benchmark.py [--rounds N] [--json]

Starts a server of its own. Needs 1.5 GiB in /dev/shm. With redis-py (``pip install redis``) its figures come too.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import mmap
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any, Callable

os.environ.setdefault("PYTHONHASHSEED", "0")

from kvcache import BlockShape, Client, Result, wire
from kvcache.memory import address_of
from tests import engines
from tests.serving import Server

engines.use_vllm()

from kvcache.vllm import KvCacheTier  # noqa: E402

_IN_FLIGHT = 16
_JOB = 8
"""Blocks of a job, as engines ask for those of a prompt together; two jobs are on their way."""

_BYTES = 96 << 20
_WARM = 8
_KEYS = 8192


def shared(size: int) -> tuple[memoryview, Any]:
    file = tempfile.NamedTemporaryFile(dir="/dev/shm", prefix="kvcache-bench-", suffix=".pool")
    os.posix_fallocate(file.fileno(), 0, size)
    view = memoryview(mmap.mmap(file.fileno(), size, flags=mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0x8000)))
    return view, file


class Resp:
    """Bare RESP: pipelined, from and into memory views."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb", 1 << 16)

    def set(self, items: list[tuple[bytes, memoryview]]) -> None:
        for key, value in items:
            head = b"*3\r\n$3\r\nSET\r\n$%d\r\n%b\r\n$%d\r\n" % (len(key), key, value.nbytes)
            self.socket.sendall(head)
            self.socket.sendall(value)
            self.socket.sendall(b"\r\n")
        for _ in items:
            if self.file.readline() != b"+OK\r\n":
                raise AssertionError("SET failed")

    def get(self, items: list[tuple[bytes, memoryview]]) -> None:
        self.socket.sendall(b"".join(b"*2\r\n$3\r\nGET\r\n$%d\r\n%b\r\n" % (len(key), key) for key, _ in items))
        for _, into in items:
            size = int(self.file.readline()[1:])
            if size != into.nbytes:
                raise AssertionError(f"GET answered {size}")
            at = 0
            while at < size:
                at += self.file.readinto(into[at:])
            self.file.read(2)


class Report:
    def __init__(self) -> None:
        self.rows: list[dict] = []

    def add(self, what: str, value: float, unit: str, budget: str = "", met: bool | None = None) -> None:
        self.rows.append({"what": what, "value": value, "unit": unit, "budget": budget, "met": met})
        mark = {None: "", True: "ok", False: "MISSED"}[met]
        print(f"{what:<64} {value:>10.3f} {unit:<8} {budget:<18} {mark}", flush=True)


def rate(work: Callable[[], None], size: int) -> float:
    began = time.perf_counter()
    work()
    return size / (time.perf_counter() - began) / 1e9


def bandwidth(report: Report, server: Server, client: Client, block: int, rounds: int) -> None:
    values = client.namespace("bench", layout=str(block))
    view, file = shared(2 * _BYTES)
    count = _BYTES // block
    region, base = client.region_of(view)
    keys = [b"%d-%08d" % (block, number) for number in range(count)]
    spans = [[(base + number * block, block)] for number in range(count)]
    source, target = address_of(view), address_of(view[_BYTES:])
    resp = Resp(server.port)
    rows = [view[number * block : (number + 1) * block] for number in range(count)]
    try:
        import redis

        library = redis.Redis(port=server.port)
    except ImportError:
        library = None
    turn = [0]

    def copy() -> None:
        for number in range(count):
            ctypes.memmove(target + number * block, source + number * block, block)

    def jobs(submit: Callable, named: list[bytes]) -> None:
        values_of = list(zip(named, spans))
        running = []
        for begin in range(0, count, _JOB):
            running.append(submit(region, values_of[begin : begin + _JOB]))
            if len(running) > _IN_FLIGHT // _JOB:
                client.wait(running[-1 - _IN_FLIGHT // _JOB])
        for each in running:
            if set(client.wait(each)) != {Result.COPIED}:
                raise AssertionError(each.results)

    def load() -> None:
        jobs(values.submit_load, keys)

    def store() -> None:
        turn[0] += 1
        jobs(values.submit_store, [b"%d/" % turn[0] + key for key in keys])

    def groups(call: Callable) -> None:
        for begin in range(0, count, _IN_FLIGHT):
            call(list(zip(keys, rows))[begin : begin + _IN_FLIGHT])

    def library_set() -> None:
        for begin in range(0, count, _IN_FLIGHT):
            pipe = library.pipeline(transaction=False)
            for key, row in list(zip(keys, rows))[begin : begin + _IN_FLIGHT]:
                pipe.set(key, bytes(row))
            pipe.execute()

    def library_get() -> None:
        for begin in range(0, count, _IN_FLIGHT):
            found = library.mget(keys[begin : begin + _IN_FLIGHT])
            for row, value in zip(rows[begin : begin + _IN_FLIGHT], found):
                row[:] = value

    jobs(values.submit_store, keys)
    values.pin(keys, 600)
    kinds: dict[str, Callable[[], None]] = {
        "memcpy": copy,
        "load": load,
        "store": store,
        "RESP SET": lambda: groups(resp.set),
        "RESP GET": lambda: groups(resp.get),
    }
    if library is not None:
        kinds["redis-py SET"], kinds["redis-py GET"] = library_set, library_get
    rates: dict[str, list[float]] = {name: [] for name in kinds}
    used: dict[str, list[float]] = {name: [] for name in kinds}
    for round_number in range(rounds + _WARM):
        for name, work in kinds.items():
            processor = time.process_time()
            found = rate(work, _BYTES)
            if round_number >= _WARM:
                rates[name].append(found)
                used[name].append((time.process_time() - processor) / (_BYTES / 1e9))
    median = {name: statistics.median(each) for name, each in rates.items()}
    cpu = {name: statistics.median(each) for name, each in used.items()}
    of = f"of {block >> 10} KiB, 16 in flight"
    for name, value in median.items():
        report.add(f"{name} {of}", value, "GB/s")
    for mine, low, theirs in (("load", 0.85, "GET"), ("store", 0.55, "SET")):
        share = statistics.median(a / b for a, b in zip(rates[mine], rates["memcpy"]))
        report.add(f"{mine} {of}, of memcpy", share, "", f"at least {low}", share >= low)
        bare = median[mine] / median[f"RESP {theirs}"]
        report.add(f"{mine} {of}, of bare RESP", bare, "", "at least 2", bare >= 2)
        if library is not None:
            against = median[mine] / median[f"redis-py {theirs}"]
            report.add(f"{mine} {of}, of redis-py", against, "", "at least 3", against >= 3)
        processor = cpu[mine] / cpu[f"RESP {theirs}"]
        report.add(f"{mine} {of}, processor of bare RESP's", processor, "", "at most 0.2", processor <= 0.2)
    values.pin(keys, 0)
    region.close()
    file.close()


def warm(server: Server, client: Client, size: int, seconds: float) -> None:
    """Has the server see requests of all kinds until its compiler, which takes a core meanwhile, is done."""
    values = client.namespace("bench", layout="warm")
    view, file = shared(16 * size)
    region, base = client.region_of(view)
    resp = Resp(server.port)
    end = time.monotonic() + seconds
    turn = 0
    while time.monotonic() < end:
        turn += 1
        spans = [(base + number * size, size) for number in range(16)]
        keys = [b"%d-%d" % (turn % 40, number) for number in range(16)]
        stores = [values.submit_store(region, [(b"%d-" % turn + key, [span])]) for key, span in zip(keys, spans)]
        loads = [values.submit_load(region, [(b"%d-" % turn + key, [span])]) for key, span in zip(keys, spans)]
        for job in stores + loads:
            client.wait(job)
        rows = [(key, view[number * size : (number + 1) * size]) for number, key in enumerate(keys)]
        resp.set(rows)
        resp.get(rows)
    region.close()
    file.close()


def latency(report: Report, client: Client, block: int) -> None:
    values = client.namespace("bench", layout=f"latency {block}")
    view, file = shared(4 * block)
    region, base = client.region_of(view)
    values.store(region, [(b"k", [(base, block)])])
    connection = client._connected()

    def times(work: Callable[[], None], count: int) -> list[float]:
        found = []
        for _ in range(count):
            began = time.perf_counter()
            work()
            found.append((time.perf_counter() - began) * 1e6)
        return sorted(found)

    def one() -> None:
        if values.load(region, [(b"k", [(base + block, block)])]) != [Result.COPIED]:
            values.store(region, [(b"k", [(base, block)])])

    target, source = address_of(view[2 * block :]), address_of(view)
    loads, pings, copies = [], [], []
    for _ in range(5):
        loads.append(statistics.median(times(one, 300)))
        pings.append(statistics.median(times(lambda: connection.request(wire.PING, b"", 10), 300)))
        copies.append(statistics.median(times(lambda: ctypes.memmove(target, source, block), 300)))
    load, ping, copy = (statistics.median(each) for each in (loads, pings, copies))
    report.add(f"load of {block >> 10} KiB, one in flight, median", load, "us")
    report.add("a PING and its reply: two wake-ups", ping, "us")
    report.add("the copy alone", copy, "us")
    over = (load - copy) / ping
    report.add(f"overhead of a load of {block >> 10} KiB, of two wake-ups", over, "", "at most 1", over <= 1)

    quiet = times(one, 3000)
    evictor = subprocess.Popen(
        [sys.executable, __file__, "--evict", "{}:{}".format(*client.address)], stdout=subprocess.PIPE
    )
    try:
        assert evictor.stdout is not None
        evictor.stdout.readline()
        busy = times(one, 3000)
    finally:
        evictor.terminate()
        evictor.communicate()
    share = busy[-4] / quiet[-4]
    report.add(f"p99.9 of {block >> 10} KiB, one in flight", quiet[-4], "us")
    report.add("the same while another process stores 1 MiB blocks and evicts", busy[-4], "us")
    report.add("ratio of the two", share, "", "at most 3", share <= 3)
    region.close()
    file.close()


def evict(address: str) -> None:
    """Stores blocks of 1 MiB until it is ended, half of the time: a copy uses one of two cores in any case."""
    with Client(address) as client:
        values = client.namespace("bench", layout="evicts")
        view, file = shared(64 << 20)
        region, base = client.region_of(view)
        print("evicts", flush=True)
        number = 0
        with file:
            while True:
                number += 1
                began = time.perf_counter()
                values.store(region, [(b"e%d" % number, [(base + (number % 60 << 20), 1 << 20)])])
                time.sleep(time.perf_counter() - began)


def look_ups(report: Report, client: Client) -> None:
    values = client.namespace("bench", layout="look-ups")
    view, file = shared(1 << 20)
    region, base = client.region_of(view)
    keys = [b"%032d\0\0\0\0" % number for number in range(_KEYS)]
    for begin in range(0, _KEYS, 1024):
        values.store(region, [(key, [(base, 64)]) for key in keys[begin : begin + 1024]])
    found = []
    for _ in range(400):
        began = time.perf_counter()
        count = values.match(keys)
        found.append((time.perf_counter() - began) * 1e3)
        if count != _KEYS:
            raise AssertionError(count)
    middle = statistics.median(found[-100:])
    report.add(f"match of {_KEYS:,} flat keys, one request", middle, "ms", "at most 3", middle <= 3)
    began = time.perf_counter()
    for key in keys:
        values.contains_now(key)
    report.add("look-up of a key in shared memory", (time.perf_counter() - began) / _KEYS * 1e6, "us")
    region.close()
    file.close()
    chained(report, client)


def chained(report: Report, client: Client) -> None:
    """Chains of which all, half and nothing is present; their keys are hashed before."""
    blocks = client.blocks("bench", BlockShape(layers=1, heads=1, dim=16, tokens=1))
    tokens = list(range(_KEYS))
    began = time.perf_counter()
    whole = blocks.chain(tokens)
    report.add(f"hashing of {_KEYS:,} chained keys", (time.perf_counter() - began) * 1e3, "ms")
    for number in range(_KEYS):
        blocks.put(whole, number, bytes(64))
    half = blocks.chain(tokens[: _KEYS // 2 - 1])
    half.extend(tokens)
    for name, chain, present in (("all", whole, _KEYS), ("half", half, _KEYS // 2 - 1), ("none", None, 0)):
        found = []
        for turn in range(400):
            asked = blocks.chain([_KEYS + turn, *tokens[1:]]) if chain is None else chain
            began = time.perf_counter()
            match = blocks.match(asked)
            found.append((time.perf_counter() - began) * 1e6)
            if match != (0, present, 0):
                raise AssertionError(match)
        middle = statistics.median(found)
        what = f"match of {_KEYS:,} chained keys, {name} present, in shared memory"
        report.add(what, middle, "us", "at most 100", middle <= 100)
    by_message = []
    for _ in range(400):
        began = time.perf_counter()
        blocks._match_by_message(whole)
        by_message.append((time.perf_counter() - began) * 1e6)
    report.add(f"match of {_KEYS:,} chained keys, by message", statistics.median(by_message), "us")


def scheduler(report: Report, server: Server) -> None:
    rows, row = 64, 256 << 10
    view, file = shared(rows * row)
    tier = KvCacheTier(None, view.cast("B", [rows, row]), "T", address=server.address, model="bench")
    spent: dict[str, list[float]] = {"lookup": [], "submit_store": [], "submit_load": []}
    job = 0
    for turn in range(300):
        for name in spent:
            key = b"%032d\0\0\0\0" % turn
            job += 1
            metadata = engines.JobMetadata(job, [key], [turn % rows])
            call = getattr(tier, name)
            arguments = (key, None) if name == "lookup" else (metadata,)
            began = time.perf_counter()
            call(*arguments)
            spent[name].append((time.perf_counter() - began) * 1e6)
        tier.drain_jobs()
        tier.get_finished_jobs()
    for name, each in spent.items():
        middle = statistics.median(each)
        report.add(f"{name} in the scheduler's thread, median", middle, "us", "at most 60", middle <= 60)
    tier.shutdown()
    file.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--warm", type=float, default=40, help="seconds of requests before anything is measured")
    parser.add_argument("--rounds", type=int, default=5, help="measured rounds of each bandwidth")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON at the end")
    parser.add_argument("--evict", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.evict:
        evict(options.evict)
    report = Report()
    for block in (256 << 10, 1 << 20):
        server = Server("768MiB", "--set", "memory.policy=lru")
        try:
            with Client(server.address) as client:
                if block == 256 << 10:
                    look_ups(report, client)
                warm(server, client, block, options.warm)
                bandwidth(report, server, client, block, options.rounds)
                if block == 256 << 10:
                    scheduler(report, server)
                    latency(report, client, block)
        finally:
            server.close()
    if options.json:
        print(json.dumps({"load": os.getloadavg(), "rows": report.rows}, indent=1))
    return 0 if all(row["met"] is not False for row in report.rows) else 1


if __name__ == "__main__":
    sys.exit(main())
