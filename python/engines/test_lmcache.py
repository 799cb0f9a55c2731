"""The adapter inside LMCache as it is released, without a GPU, against real servers.

Run with the Python of a version's environment, in the folder ``python``::

    ~/.cache/kvcache/engines/lmcache-0.5.6/bin/python -m unittest -v engines.test_lmcache
"""

from __future__ import annotations

import argparse
import contextlib
import inspect
import io
import itertools
import json
import logging
import mmap
import os
import pathlib
import random
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.request
from typing import Any, List, Optional
from unittest import mock

import torch
from lmcache.cli.commands.bench.l2_adapter_bench import command, runner
from lmcache.cli.commands.bench.l2_adapter_bench.data import make_memory_objects
from lmcache.v1.distributed.api import ObjectKey
from lmcache.v1.distributed.config import EvictionConfig
from lmcache.v1.distributed.quota_manager import QuotaManager
from lmcache.v1.distributed.storage_controllers.eviction_controller import (
    L2AdapterEvictionState,
    L2EvictionController,
)
from tests import engines
from tests.faults import Faults, logged, secrets
from tests.serving import Cluster, ServedTest, Server, free_ports, until

from engines.lmcache_l2 import Adapter, create, plugin
from engines.peers import ratio
from engines.turns import Cell, Memory, measure
from kvcache import lmcache_compat
from kvcache.lmcache import KvCacheL2Adapter

KIB, MIB = 1 << 10, 1 << 20
SCALE = int(os.environ.get("KVCACHE_TEST_SCALE", "1"))
ROOT = pathlib.Path(__file__).resolve().parents[2]


class L1:
    """LMCache's memory: private by default, a file in ``/dev/shm`` with ``--no-l1-use-lazy --shm-name NAME``."""

    def __init__(self, size: int, mapped: bool) -> None:
        self.file: Optional[Any] = None
        if mapped:
            self.file = tempfile.NamedTemporaryFile(dir="/dev/shm", prefix="kvcache-test-l1-")
            self.file.truncate(size)
            self.tensor = torch.frombuffer(mmap.mmap(self.file.fileno(), size), dtype=torch.uint8)
        else:
            self.tensor = torch.zeros(size, dtype=torch.uint8)

    def objects(self, count: int, size: int, offset: int = 0, fill: int = 0) -> List[Any]:
        return make_memory_objects(self.tensor, count, size, offset, fill_offset=fill)

    def close(self) -> None:
        if self.file is not None:
            self.file.close()


def keys(count: int, first: int = 0, model: str = "bench-model", salt: str = "") -> List[ObjectKey]:
    return [
        ObjectKey(chunk_hash=number.to_bytes(16, "big"), model_name=model, kv_rank=1 << 24, cache_salt=salt)
        for number in range(first, first + count)
    ]


class LmcacheTest(ServedTest):
    host_bytes = "512MiB"

    def memory(self, size: int, mapped: bool = True) -> L1:
        memory = L1(size, mapped)
        self.addCleanup(memory.close)
        return memory

    def adapter(self, memory: L1, address: str = "", **params: Any) -> Any:
        adapter = create(plugin(address or self.server.address, **params), memory.tensor)
        self.assertIsInstance(adapter, KvCacheL2Adapter)
        self.addCleanup(lambda: adapter._closed or adapter.close())
        return adapter

    def store(self, adapter: Any, names: List[ObjectKey], objects: List[Any]) -> Any:
        task = adapter.submit_store_task(names, objects)
        return runner._wait_store_finished(adapter, [task], 60)[task]

    def look_up(self, adapter: Any, names: List[ObjectKey]) -> List[bool]:
        task = adapter.submit_lookup_and_lock_task(names, {})
        bitmap = runner._wait_lookup_finished(adapter, [task], 60)[task]
        return [bitmap.test(number) for number in range(len(names))]

    def load(self, adapter: Any, names: List[ObjectKey], objects: List[Any]) -> List[bool]:
        task = adapter.submit_load_task(names, objects)
        bitmap = runner._wait_load_finished(adapter, [task], 60)[task]
        return [bitmap.test(number) for number in range(len(names))]


class BenchTest(LmcacheTest):
    """``lmcache bench l2``, its own functions, every byte compared."""

    def bench(self, mapped: bool, size: int, count: int, in_flight: int) -> None:
        rounds, each = 2, count * size
        memory = self.memory(2 * in_flight * each, mapped)
        stored = [memory.objects(count, size, flight * each, flight) for flight in range(in_flight)]
        loaded = [memory.objects(count, size, (in_flight + flight) * each, 128) for flight in range(in_flight)]
        adapter = self.adapter(memory)

        def names(number: int) -> List[List[ObjectKey]]:
            first = number * in_flight * count
            return [keys(count, first + flight * count, self.id()) for flight in range(in_flight)]

        def quiet(_: str) -> None:
            pass

        store = runner.bench_store(adapter, in_flight, count, size, rounds, names, lambda _: stored, quiet)
        found = runner.bench_lookup(adapter, in_flight, count, rounds, names, quiet)
        load = runner.bench_load(adapter, in_flight, count, size, rounds, names, lambda _: loaded, quiet)
        for result in (store, found, load):
            self.assertEqual(result.success_counts, [in_flight * count] * rounds, result.operation)
        for ours, theirs in zip(sum(stored, []), sum(loaded, [])):
            self.assertTrue(torch.equal(ours.raw_data, theirs.raw_data))

    def test_small_objects_are_mapped(self) -> None:
        self.bench(True, 256 * KIB, 32, 3)

    def test_small_objects_are_sent(self) -> None:
        self.bench(False, 256 * KIB, 32, 3)

    def test_large_objects_are_mapped(self) -> None:
        self.bench(True, 8 * MIB, 4, 3)

    def test_large_objects_are_sent(self) -> None:
        self.bench(False, 8 * MIB, 4, 3)

    def test_bench_peers_compares_every_byte(self) -> None:
        cells = [Cell(256 * KIB, 4, 2), Cell(4 * KIB, 1, 1)]
        adapters = {}
        for name, folder in (("mapped", "/dev/shm"), ("sent", None)):
            memory = Memory(cells[0].bytes, folder)
            self.addCleanup(memory.close)
            adapters[name] = Adapter(plugin(self.server.address), memory), [self.server.pid()]
            self.addCleanup(adapters[name][0].close)
        told: List[dict] = []
        measure(adapters, cells, 2, 0.0, told.append)
        rows = [each for each in told if "round" in each]
        self.assertEqual([each for each in told if "why" in each], [])
        self.assertEqual(len(rows), len(adapters) * len(cells) * 2 * 2)  # to store and to load, in two rounds
        self.assertTrue(all(each["rate"] > 0 for each in rows))
        self.assertIsNotNone(ratio(told, "load", cells[1], "mapped", "sent", "processor"))
        stamp, numbers = Memory.stamp, itertools.count()
        with mock.patch.object(Memory, "stamp", lambda memory, _, size: stamp(memory, next(numbers), size)):
            measure(adapters, cells[:1], 1, 0.0, told.append)  # what is stored is never what is expected
        self.assertEqual(["wrong bytes" in each["why"] for each in told if "why" in each], [True, True])

    def test_ratios_are_of_the_same_rounds(self) -> None:
        rates = {"ours": (2.0, 30.0, 4.0), "other": (1.0, 10.0, 4.0)}
        cell = Cell(256 * KIB, 4, 2)
        rows = [
            {"operation": "load", "cell": list(cell), "name": name, "round": number, "rate": rate}
            for name, all_rates in rates.items()
            for number, rate in enumerate(all_rates)
        ]
        self.assertEqual(ratio(rows, "load", cell, "ours", "other"), (2.0, 1.0, 3.0))
        self.assertIsNone(ratio(rows, "store", cell, "ours", "other"))

    def test_its_command_verifies(self) -> None:
        parser = argparse.ArgumentParser()
        command.add_l2_arguments(parser)
        words = ["--no-skip-verify", "--num-keys", "8", "--l2-adapter", json.dumps(plugin(self.server.address))]
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            command.run_l2_adapter_bench(mock.MagicMock(), parser.parse_args(words))
        self.assertIn("All 8 keys data verified OK", out.getvalue())


class AccountsTest(LmcacheTest):
    """What LMCache is told of objects, with its own eviction controller."""

    host_bytes = "64MiB"

    def evicting(self, policy: str, params: dict, limits: dict, server: Server) -> Any:
        """An adapter that LMCache's controller evicts from, and counts what it deletes."""
        adapter = self.adapter(self.memory(MIB), server.address, **params)
        adapter.deleted = []
        delete = adapter.delete
        adapter.delete = lambda names: (adapter.deleted.extend(names), delete(names))
        state = L2AdapterEvictionState(0, adapter, EvictionConfig(policy, trigger_watermark=0.8, eviction_ratio=0.2))
        quotas = QuotaManager()
        for salt, limit in limits.items():
            quotas.set_quota(salt, limit)
        controller = L2EvictionController([state], quotas)
        controller.start()
        self.addCleanup(controller.stop)
        return adapter

    def server_of(self, host_bytes: str, *options: str) -> Server:
        server = Server(host_bytes, *options)
        self.addCleanup(server.close)
        return server

    def fill(self, adapter: Any, count: int, size: int, salt: str = "", first: int = 0) -> List[ObjectKey]:
        memory = self.memory(8 * size)
        objects = memory.objects(8, size)
        everyone = keys(count, first, self.id(), salt)
        adapter._mover.add(memory.tensor.data_ptr(), memory.tensor.numel())
        for begin in range(0, count, 8):
            self.assertTrue(self.store(adapter, everyone[begin : begin + 8], objects).is_successful())
        return everyone

    def used(self, adapter: Any) -> int:
        return adapter.get_usage().total_bytes_used

    def is_right(self, adapter: Any) -> bool:
        """Whether usage is within a twentieth of what the server has."""
        live = adapter._namespace.usage()[1]
        return abs(self.used(adapter) - live) <= live / 20

    def check_ends(self, adapter: Any, usage: Any, watermark: int) -> None:
        """Eviction ends below the watermark, in 5 s on a quiet machine, and evicts nothing more."""
        until(lambda: usage() < watermark, "usage below the watermark", 15)
        time.sleep(1.5)
        deleted = list(adapter.deleted)
        self.assertEqual(len(deleted), len(set(deleted)), "an object was evicted twice")
        time.sleep(float(os.environ.get("KVCACHE_TEST_QUIET_SECONDS", "5")))
        self.assertEqual(adapter.deleted, deleted)
        self.assertTrue(self.is_right(adapter))
        self.assertGreater(len(deleted), 0)

    def test_eviction_by_salt_ends(self) -> None:
        quota = 50 * MIB
        adapter = self.evicting("IsolatedLRU", {}, {"mine": quota}, self.server_of("512MiB"))
        names = self.fill(adapter, 24, 8 * MIB, "mine")
        self.check_ends(adapter, lambda: adapter.get_usage().bytes_by_cache_salt["mine"], int(0.8 * quota))
        found = self.look_up(adapter, names)
        self.assertEqual(found, [name not in adapter.deleted for name in names])

    def test_eviction_by_watermark_ends_also_after_a_restart_of_lmcache(self) -> None:
        server = self.server_of("512MiB")
        params = {"max_capacity_gb": 0.125}
        adapter = self.evicting("LRU", params, {}, server)
        self.fill(adapter, 24, 8 * MIB)
        self.check_ends(adapter, lambda: self.used(adapter), int(0.8 * 128 * MIB))

        again = self.evicting("LRU", {"max_capacity_gb": 0.0625}, {}, server)
        self.check_ends(again, lambda: self.used(again) or 1 << 40, int(0.8 * 64 * MIB))
        until(lambda: self.is_right(adapter), "the first one to hear of it", 10)

    def test_usage_is_right_after_overfilling_and_after_a_restart_of_lmcache(self) -> None:
        adapter = self.adapter(self.memory(MIB))
        names = self.fill(adapter, 160, MIB)
        until(lambda: self.is_right(adapter), "usage of what the server kept", 10)
        self.assertLess(self.used(adapter), 64 * MIB)
        kept = [name for name, found in zip(names, self.look_up(adapter, names)) if found]

        listed: List[Any] = []
        cursor = None
        while True:
            page = adapter.list_l2_keys(self.id(), 7, cursor)
            listed += page.entries
            cursor = page.next_page_token
            if cursor is None:
                break
        self.assertEqual({each.key.to_object_key() for each in listed}, set(kept))
        self.assertEqual(len(listed), len(kept))
        self.assertEqual({each.size_bytes for each in listed}, {MIB})
        self.assertEqual(adapter.list_l2_keys("another").entries, ())
        with self.assertRaises(ValueError):
            adapter.list_l2_keys(cursor="no cursor")

        again = self.adapter(self.memory(MIB))
        until(lambda: self.used(again) and self.is_right(again), "usage after the restart", 10)
        self.assertEqual(dict(again.get_usage().bytes_by_cache_salt), {})
        self.assertEqual(again.report_status()["objects_without_key"], again.report_status()["objects"])
        self.assertTrue(all(self.look_up(again, kept)))
        self.assertEqual(dict(again.get_usage().bytes_by_cache_salt), {"": len(kept) * MIB})
        self.assertTrue(self.is_right(again))

    def test_an_object_counts_once_and_a_deleted_one_not(self) -> None:
        adapter = self.adapter(self.memory(MIB))
        until(lambda: self.is_right(adapter), "usage at the start", 10)
        before = self.used(adapter)
        names = self.fill(adapter, 8, 64 * KIB)
        self.fill(adapter, 8, 64 * KIB)
        self.assertEqual(self.used(adapter), before + 512 * KIB)
        adapter.delete(names[:3])
        self.assertEqual(self.used(adapter), before + 320 * KIB)
        self.assertEqual(self.look_up(adapter, names), [False] * 3 + [True] * 5)
        adapter.delete(names[:3])
        self.assertEqual(self.used(adapter), before + 320 * KIB)

    def test_a_server_that_starts_again_has_nothing(self) -> None:
        server = self.server_of("64MiB")
        adapter = self.adapter(self.memory(MIB), server.address)
        self.fill(adapter, 8, 64 * KIB)
        server.kill()
        server.start()
        until(lambda: self.used(adapter) == 0, "usage of an empty server")

    def test_what_two_look_ups_found_stays_until_both_are_unlocked(self) -> None:
        adapter = self.adapter(self.memory(MIB))
        (name,) = self.fill(adapter, 1, MIB, first=10_000)
        for _ in range(2):
            self.assertEqual(self.look_up(adapter, [name]), [True])
        adapter.submit_unlock([name])
        self.fill(adapter, 160, MIB, first=20_000)
        self.assertEqual(adapter._namespace.contains_now(adapter._key(name)), True)
        adapter.submit_unlock([name])
        self.fill(adapter, 160, MIB, first=30_000)
        self.assertEqual(adapter._namespace.contains_now(adapter._key(name)), False)


class FaultsTest(LmcacheTest):
    def test_a_key_that_is_too_long_fails_its_task_alone(self) -> None:
        memory = self.memory(4 * KIB)
        adapter = self.adapter(memory)
        names = [*keys(1, 1, self.id()), *keys(2, 2, "m" * 5000)]
        objects = memory.objects(3, KIB)
        with self.assertLogs("kvcache.lmcache", "WARNING") as logs:
            self.assertFalse(self.store(adapter, names, objects).is_successful())
            self.assertEqual(self.look_up(adapter, names), [True, False, False])
            self.assertEqual(self.load(adapter, names, objects), [True, False, False])
            adapter.submit_unlock(names)
            adapter.delete(names)
        self.assertEqual(len(logs.output), 1, logs.output)
        self.assertRegex(logs.output[0], r"a key of 5\d\d\d bytes; allowed: 1 to 4096")
        status = adapter.report_status()
        self.assertGreater(status["refused"], 0)
        self.assertEqual(status["failed_tasks"], 1)

    def test_what_the_server_cannot_keep_is_logged_once_with_its_limit(self) -> None:
        for mapped in (True, False):
            memory = self.memory(300 * MIB, mapped)
            with self.assertLogs("kvcache.lmcache", "WARNING") as logs:
                adapter = self.adapter(memory)
                for number in range(2):
                    (name,) = keys(1, number, self.id())
                    self.assertFalse(self.store(adapter, [name], memory.objects(1, 300 * MIB)).is_successful())
            refused = [each for each in logs.output if "314572800" in each]
            self.assertEqual(len(refused), 1, logs.output)
            self.assertRegex(refused[0], "allowed: 1 to 268435")

    def test_its_status_says_how_objects_move_and_what_was_found(self) -> None:
        for mapped in (True, False):
            memory = self.memory(4 * KIB, mapped)
            adapter = self.adapter(memory, max_capacity_gb=2)
            names = keys(3, 1, f"{self.id()} {mapped}")
            objects = memory.objects(3, KIB)
            self.assertTrue(self.store(adapter, names[:2], objects[:2]).is_successful())
            self.look_up(adapter, names)
            self.load(adapter, names[:2], objects[:2])
            status = adapter.report_status()
            self.assertEqual(status["transfer"], "mapped" if mapped else "sent")
            self.assertTrue(status["is_healthy"])
            counted = [status[each] for each in ("lookups", "hits", "stored", "loaded", "refused", "failed_tasks")]
            self.assertEqual(counted, [3, 2, 2, 2, 0, 0])
            self.assertEqual(status["max_capacity_bytes"], 2 << 30)
            self.assertGreater(status["current_size_bytes"], 0)

    def test_a_task_of_more_keys_than_a_message_holds_is_divided(self) -> None:
        count = 20_000
        for mapped in (True, False):
            memory = self.memory(2 * count, mapped)
            adapter = self.adapter(memory)
            names = keys(count, 1, f"{self.id()} {mapped}")
            self.assertTrue(self.store(adapter, names, memory.objects(count, 1)).is_successful())
            self.assertTrue(all(self.look_up(adapter, names)))
            self.assertTrue(all(self.load(adapter, names, memory.objects(count, 1, count, 128))))
            self.assertTrue(torch.equal(memory.tensor[:count], memory.tensor[count:]))
            adapter.delete(names)

    def test_a_server_that_stands_still_for_three_seconds_ends_a_store_within_four(self) -> None:
        for mapped in (True, False):
            server = Server("512MiB")
            self.addCleanup(server.close)
            memory = self.memory(128 * MIB, mapped)
            adapter = self.adapter(memory, server.address)
            names = keys(8, 1, self.id())
            self.assertTrue(self.store(adapter, names[:1], memory.objects(1, 8 * MIB)).is_successful())
            began = time.monotonic()
            task = adapter.submit_store_task(names, memory.objects(8, 8 * MIB))
            server.signal(signal.SIGSTOP)
            wake = threading.Timer(3 - (time.monotonic() - began), server.signal, [signal.SIGCONT])
            wake.start()
            done = runner._wait_store_finished(adapter, [task], 60)[task]
            seconds = time.monotonic() - began
            self.assertTrue(done.is_successful())
            self.assertLess(seconds, 4)
            loaded = self.load(adapter, names, memory.objects(8, 8 * MIB, 64 * MIB, 128))
            self.assertEqual(loaded, [True] * 8)
            self.assertTrue(torch.equal(memory.tensor[: 64 * MIB], memory.tensor[64 * MIB :]))


class RandomTest(LmcacheTest):
    """Random work with faults and with evictions. ``KVCACHE_TEST_SCALE=10`` has 1,000 faults and 10,000 objects."""

    sizes = (4 * KIB, 64 * KIB, 256 * KIB)

    def content(self, number: int, size: int) -> torch.Tensor:
        """What the object of a number has."""
        return (torch.arange(size // 8, dtype=torch.int64) * 2654435761 + number * 7919).view(torch.uint8)

    def work(self, adapter: Any, memory: L1, numbers: List[int], size: int, counts: dict) -> None:
        """Looks objects up and loads what is there, as LMCache does; compares, and stores what was not."""
        names = [keys(1, number, self.id())[0] for number in numbers]
        objects = memory.objects(len(names), size)
        found = self.look_up(adapter, names)
        here = [at for at, there in enumerate(found) if there]
        memory.tensor[: len(names) * size].zero_()
        loaded = self.load(adapter, [names[at] for at in here], [objects[at] for at in here]) if here else []
        for at, good in zip(here, loaded):
            counts["loaded"] += good
            counts["wrong"] += good and not torch.equal(objects[at].raw_data.view(-1), self.content(numbers[at], size))
        adapter.submit_unlock([names[at] for at in here])
        there = {at for at, good in zip(here, loaded) if good}
        absent = [at for at in range(len(names)) if at not in there]
        for at in absent:
            objects[at].raw_data.view(-1).copy_(self.content(numbers[at], size))
        if absent:
            done = self.store(adapter, [names[at] for at in absent], [objects[at] for at in absent])
            counts["failed"] += not done.is_successful()

    def test_random_faults_are_misses_and_leave_no_task(self) -> None:
        files = self.enterContext(secrets())
        server = Server("32MiB", "--set", f"transport.secret_file={files[0]}")
        self.addCleanup(server.close)
        counts = {"loaded": 0, "wrong": 0, "failed": 0}
        with logged("lmcache") as theirs, logged("kvcache") as ours:
            pairs = []
            for mapped, secret in ((True, files[0]), (False, files[0]), (True, files[1])):
                memory = self.memory(64 * MIB, mapped)
                adapter = self.adapter(memory, server.address, timeout=0.5, secret_file=secret)
                pairs.append((adapter, memory))
            faults = Faults(server, seed=21)
            chosen = faults.chosen

            def work(kind: str) -> None:
                if kind == "key":
                    long = keys(2, 1, "m" * 5000)
                    for adapter, memory in pairs[:2]:
                        objects = memory.objects(2, KIB)
                        self.assertFalse(self.store(adapter, long, objects).is_successful())
                        self.assertEqual(self.look_up(adapter, long), [False] * 2)
                        self.assertEqual(self.load(adapter, long, objects), [False] * 2)
                        adapter.submit_unlock(long)
                        adapter.delete(long)
                adapter, memory = pairs[2] if kind == "password" else chosen.choice(pairs[:2])
                before = counts["loaded"]
                for _ in range(2):
                    kept = chosen.randrange(3)
                    first = 1000 * kept + chosen.randrange(40)
                    count = 200 if kind == "full" else 8
                    self.work(adapter, memory, list(range(first, first + count)), self.sizes[kept], counts)
                self.assertTrue(kind != "password" or counts["loaded"] == before)
                if chosen.random() < 0.2:
                    adapter.delete(keys(20, 1000 * chosen.randrange(3), self.id()))

            faults.run(100 * SCALE if SCALE > 1 else 20, work, lambda: all(adapter._client.connected for adapter, _ in pairs[:2]))
            for adapter, _ in pairs:
                until(lambda adapter=adapter: not any(adapter._results.values()), "no result is left")
        print(f"lmcache, {faults.told()}: {counts}", flush=True)
        self.assertEqual(counts["wrong"], 0)
        self.assertGreater(counts["loaded"], 100)
        told = [each.getMessage() for each in (*theirs, *ours) if each.exc_info or each.levelno >= logging.ERROR]
        self.assertEqual(told, [])
        for adapter, _ in pairs[:2]:
            live = lambda adapter=adapter: adapter._namespace.usage()[1]  # noqa: E731
            used = lambda adapter=adapter: adapter.get_usage().total_bytes_used  # noqa: E731
            until(lambda live=live, used=used: abs(used() - live()) <= live() / 20, "usage of what the server has", 30)

    def test_random_objects_with_evictions(self) -> None:
        server = Server("32MiB", "--set", "admission=always")
        self.addCleanup(server.close)
        pairs = []
        for mapped in (True, False):
            memory = self.memory(8 * MIB, mapped)
            pairs.append((self.adapter(memory, server.address), memory))
        chosen = random.Random(22)
        counts = {"loaded": 0, "wrong": 0, "failed": 0}
        moved = 0
        while moved < 1000 * SCALE:
            adapter, memory = chosen.choice(pairs)
            kept = chosen.randrange(3)
            first = 100_000 * kept + int(chosen.random() ** 2 * 600)
            count = chosen.randint(1, 16)
            self.work(adapter, memory, list(range(first, first + count)), self.sizes[kept], counts)
            moved += count
        print(f"lmcache, seed 22: {moved} objects, {counts}", flush=True)
        self.assertEqual(counts["wrong"], 0)
        self.assertEqual(counts["failed"], 0)
        self.assertGreater(counts["loaded"], 100)


class ClusterTest(LmcacheTest):
    cluster: Cluster

    @classmethod
    def setUpClass(cls) -> None:
        cls.cluster = Cluster(3, "64MiB")

    @classmethod
    def tearDownClass(cls) -> None:
        cls.cluster.close()

    def test_objects_lie_at_three_servers_one_of_which_dies(self) -> None:
        memories = [self.memory(16 * MIB, mapped) for mapped in (True, False)]
        one, two = (self.adapter(memory, self.cluster.address, timeout=3) for memory in memories)
        for adapter in (one, two):
            until(lambda adapter=adapter: len(adapter._client.view.serving) == 3, "three servers")
            until(lambda adapter=adapter: all(each.connected for each in adapter._client._route.serving), "sessions")
        names = keys(60, 1, self.id())
        self.assertTrue(self.store(one, names, memories[0].objects(60, 64 * KIB)).is_successful())
        expected = memories[0].tensor[: 60 * 64 * KIB].clone()

        def check(adapter: Any, memory: L1) -> List[bool]:
            found = self.look_up(adapter, names)
            memory.tensor.zero_()
            loaded = self.load(adapter, names, memory.objects(60, 64 * KIB))
            self.assertTrue(all(here for here, good in zip(found, loaded) if good))
            adapter.submit_unlock(names)
            for at, good in enumerate(loaded):
                span = slice(at * 64 * KIB, (at + 1) * 64 * KIB)
                self.assertTrue(not good or torch.equal(memory.tensor[span], expected[span]))
            return loaded

        for adapter, memory in ((two, memories[1]), (one, memories[0])):
            self.assertEqual(check(adapter, memory), [True] * 60)
        until(lambda: one.get_usage().total_bytes_used == 60 * 64 * KIB, "usage of all servers")
        with logged("lmcache") as theirs, logged("kvcache.lmcache") as ours:
            self.cluster.nodes[2].kill()
            for adapter, memory in ((two, memories[1]), (one, memories[0])):
                loaded = check(adapter, memory)
                self.assertTrue(10 < sum(loaded) < 60, sum(loaded))
            until(lambda: one._client.connected and len(one._client.view.serving) == 2, "two servers")
            memories[0].tensor[: 60 * 64 * KIB] = expected
            until(lambda: self.store(one, names, memories[0].objects(60, 64 * KIB)).is_successful(), "room at the others")
            self.assertEqual(check(two, memories[1]), [True] * 60)
        self.assertEqual([each.getMessage() for each in (*theirs, *ours) if each.exc_info], [])


class ServerTest(LmcacheTest):
    """``lmcache server`` as docs/engines.md says to start it, with its own load."""

    def run_lmcache(self, *words: str, **options: Any) -> subprocess.Popen:
        process = subprocess.Popen(
            [sys.executable, "-m", "lmcache.cli.main", *words],
            env={**os.environ, "PYTHONPATH": str(ROOT / "python"), "LMCACHE_TRACK_USAGE": "false"},
            stdout=self.log,
            stderr=subprocess.STDOUT,
            **options,
        )
        self.addCleanup(lambda: (process.poll() is None and process.kill(), process.wait()))
        return process

    def documented(self) -> List[str]:
        """The words of the command in the documents, with this test's size and server."""
        text = (ROOT / "docs" / "engines.md").read_text()
        block = text.partition("## LMCache, multi-process")[2].split("```")[1]
        words = shlex.split(block.replace("\\\n", " "))
        self.assertEqual(words[:2], ["lmcache", "server"])
        words = [{"60": "0.25", "NAME": f"kvcache-test-{os.getpid()}"}.get(each, each) for each in words[1:]]
        self.assertEqual(json.loads(words[-1]), plugin("127.0.0.1:7420"))
        return [*words[:-1], words[-1].replace("127.0.0.1:7420", self.server.address)]

    def status(self) -> Any:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.http}/status", timeout=10) as reply:
                return json.load(reply)
        except OSError:
            return None

    def ours(self) -> Any:
        found: List[Any] = []

        def look(node: Any) -> None:
            if isinstance(node, dict) and node.get("type") == "KvCacheL2Adapter":
                found.append(node)
            for each in node.values() if isinstance(node, dict) else node if isinstance(node, list) else []:
                look(each)

        look(self.status())
        return found[0] if found else None

    def text(self) -> str:
        with open(self.log.name, encoding="utf-8", errors="replace") as log:
            return log.read()[-4000:]

    def test_its_server_maps_and_stores_and_finds_all_after_a_restart(self) -> None:
        self.log = tempfile.NamedTemporaryFile("w+", suffix=".log")
        self.addCleanup(self.log.close)
        self.port, self.http = free_ports(2)
        words = [*self.documented(), "--port", str(self.port), "--http-port", str(self.http)]
        began = self.run_lmcache(*words)
        until(self.ours, "the start of lmcache server", 120)
        load = ["bench", "server", "--mode", "cpu", "--transfer-mode", "lmcache_driven", "--num-tokens", "1024"]
        load += ["--rpc-url", f"tcp://localhost:{self.port}", "--url", f"http://localhost:{self.http}"]
        load += ["--kvcache-shape-spec", "(2,1024,16,8,128):bfloat16:8", "--start", "0", "--end", "2"]
        self.assertEqual(self.run_lmcache(*load).wait(120), 0, self.text())
        until(lambda: self.ours()["objects"] == 8, "all objects in the server", 30)
        status = self.ours()
        size = status["current_size_bytes"]
        shown = [status[each] for each in ("transfer", "stored", "failed_tasks", "objects_without_key")]
        self.assertEqual(shown, ["mapped", 8, 0, 0], self.text())

        began.send_signal(signal.SIGTERM)
        began.wait(60)
        self.run_lmcache(*words)
        until(self.ours, "the second start", 120)
        until(lambda: self.ours()["objects"] == 8, "the objects of before")
        status = self.ours()
        shown = [status[each] for each in ("current_size_bytes", "objects_without_key", "stored", "hits")]
        self.assertEqual([*shown[1:]], [8, 0, 0], self.text())
        self.assertLess(abs(shown[0] - size), size / 20)
        self.assertEqual(self.run_lmcache(*load).wait(120), 0, self.text())
        until(lambda: self.ours()["hits"] >= 8, "hits of what the first one stored", 30)
        status = self.ours()
        shown = [status[each] for each in ("stored", "failed_tasks", "objects", "objects_without_key")]
        self.assertEqual(shown, [0, 0, 8, 0], self.text())
        self.assertGreaterEqual(status["loaded"], 8)


class VersionTest(unittest.TestCase):
    def test_this_version_is_one_of_those_that_were_tested(self) -> None:
        with self.assertNoLogs("kvcache.lmcache_compat"):
            lmcache_compat.check_version()

    def test_other_versions_are_warned_about(self) -> None:
        for other in ("0.5.2", "0.6.0", "1.0"):
            with mock.patch("importlib.metadata.version", return_value=other):
                with self.assertLogs("kvcache.lmcache_compat", "WARNING") as logs:
                    lmcache_compat.check_version()
            self.assertIn(f"LMCache is {other}; kvcache.lmcache was tested with 0.5.3 to 0.5.6", logs.output[0])


class DoublesTest(unittest.TestCase):
    """What stands in for LMCache where it is not installed takes and asks for the same."""

    def test_methods_have_the_parameters_of_the_real_ones(self) -> None:
        pairs = [
            (engines.L2AdapterInterface, lmcache_compat.L2AdapterInterface),
            (engines.L2StoreResult, lmcache_compat.L2StoreResult),
        ]
        for double, real in pairs:
            for name, method in vars(double).items():
                if inspect.isfunction(method) and name != "__new__":
                    theirs = inspect.signature(getattr(real, name)).parameters
                    self.assertEqual(list(inspect.signature(method).parameters), list(theirs), f"{real}.{name}")
        self.assertEqual(
            engines.L2AdapterInterface.__abstractmethods__, lmcache_compat.L2AdapterInterface.__abstractmethods__
        )
        bits = lmcache_compat.Bitmap(2)
        bits.set(1)
        self.assertEqual([bits.test(0), bits.test(1)], [False, True])

    def test_the_adapter_takes_what_the_real_methods_take(self) -> None:
        for name, theirs in inspect.getmembers(lmcache_compat.L2AdapterInterface, inspect.isfunction):
            if name in vars(KvCacheL2Adapter) and name != "__init__":
                ours = inspect.signature(getattr(KvCacheL2Adapter, name))
                self.assertEqual(list(ours.parameters), list(inspect.signature(theirs).parameters), name)


if __name__ == "__main__":
    unittest.main()
