"""The connectors, through the engines' interfaces, against real servers."""

from __future__ import annotations

import contextlib
import glob
import mmap
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from types import SimpleNamespace
from typing import Any, Dict, List
from unittest import mock

from tests import engines
from tests.content import content
from tests.serving import ServedTest, Server, until

os.environ.setdefault("PYTHONHASHSEED", "0")  # what an operator sets, and the tier asks for
engines.use_vllm()
engines.use_sglang()
engines.use_lmcache()

from kvcache.connection import Connection  # noqa: E402
from kvcache.lmcache import KvCacheL2Adapter  # noqa: E402
from kvcache.memory import address_of  # noqa: E402
from kvcache.sglang import KvCacheHiCache  # noqa: E402
from kvcache.vllm import KvCacheTier  # noqa: E402

ROW = 256 << 10
SCALE = int(os.environ.get("KVCACHE_TEST_SCALE", "1"))


class Pool:
    """Rows in a file of /dev/shm, as vLLM's primary tier, or in anonymous memory."""

    def __init__(self, rows: int, row: int = ROW, shared: bool = True) -> None:
        self.row = row
        if shared:
            self.file = tempfile.NamedTemporaryFile(dir="/dev/shm", prefix="kvcache-test-", suffix=".mmap")
            self.file.truncate(rows * row)
            self.memory: Any = mmap.mmap(self.file.fileno(), rows * row)
        else:
            self.file = None
            self.memory = bytearray(rows * row)
        self.bytes = memoryview(self.memory)
        self.view = self.bytes.cast("B", [rows, row])

    def __getitem__(self, row: int) -> memoryview:
        return self.bytes[row * self.row : (row + 1) * self.row]

    def close(self) -> None:
        if self.file is not None:
            self.file.close()


def key(number: int) -> bytes:
    return b"%032d" % number + b"\0\0\0\0"


def finish(tier: Any, jobs: int, seconds: float = 30) -> Dict[int, Any]:
    results: Dict[int, Any] = {}

    def collect() -> bool:
        for each in tier.get_finished_jobs():
            results[each.job_id] = each
        return len(results) == jobs

    until(collect, "the results of all jobs", seconds)
    return results


class VllmTest(ServedTest):
    def tier(self, pool: Pool, **settings: Any) -> KvCacheTier:
        self.addCleanup(pool.close)
        tier = KvCacheTier(engines.offloading_spec(), pool.view, "KvCacheTier", **{"address": self.server.address, **settings})
        self.addCleanup(tier.shutdown)
        return tier

    def test_blocks_of_one_engine_are_found_and_loaded_by_another(self) -> None:
        first, second = Pool(16), Pool(16)
        one, two = self.tier(first, model=self.id()), self.tier(second, model=self.id())
        for row in range(8):
            first[row][:] = content(key(row), ROW)
        one.submit_store(engines.TransferJob(1, [key(row) for row in range(8)], list(range(8))))
        self.assertTrue(finish(one, 1)[1].success)
        self.assertEqual([two.lookup(key(row), None).name for row in range(9)], ["HIT"] * 8 + ["MISS"])
        two.submit_load(engines.TransferJob(7, [key(row) for row in range(8)], [15 - row for row in range(8)]))
        self.assertTrue(two.has_pending_work())
        result = finish(two, 1)[7]
        self.assertTrue(result.success)
        self.assertFalse(two.has_pending_work())
        for row in range(8):
            self.assertEqual(second[15 - row], content(key(row), ROW))

    def test_a_block_that_vanishes_after_the_look_up_is_a_miss(self) -> None:
        pool = Pool(4)
        tier = self.tier(pool, model=self.id())
        for row in range(2):
            pool[row][:] = content(key(row), ROW)
        tier.submit_store(engines.TransferJob(1, [key(0), key(1)], [0, 1]))
        finish(tier, 1)
        self.assertEqual(tier.lookup(key(1), None).name, "HIT")
        self.assertTrue(tier._namespace.delete(key(1)))
        tier.submit_load(engines.TransferJob(2, [key(0), key(1)], [2, 3]))
        result = finish(tier, 1)[2]
        self.assertFalse(result.success)
        self.assertEqual(result.successful_keys, (key(0),))
        self.assertEqual(pool[2], content(key(0), ROW))
        self.assertEqual(tier.lookup(key(1), None).name, "MISS")
        tier.on_request_finished(None)
        self.assertEqual(tier.lookup(key(0), None).name, "HIT")

    def test_engines_of_other_rows_or_models_share_nothing(self) -> None:
        pool, other = Pool(2), Pool(2, ROW // 2)
        one = self.tier(pool, model=self.id())
        one.submit_store(engines.TransferJob(1, [key(0)], [0]))
        finish(one, 1)
        self.assertEqual(self.tier(other, model=self.id()).lookup(key(0), None).name, "MISS")
        self.assertEqual(self.tier(Pool(2), model="another").lookup(key(0), None).name, "MISS")

    def test_engines_that_differ_in_one_thing_share_nothing(self) -> None:
        def found(one: Any, other: Any, tag: str) -> str:
            first = KvCacheTier(one, Pool(2).view, "T", address=self.server.address, model=tag)
            first.submit_store(engines.TransferJob(1, [key(0)], [0]))
            finish(first, 1)
            first.shutdown()
            second = KvCacheTier(other, Pool(2).view, "T", address=self.server.address, model=tag)
            try:
                return second.lookup(key(0), None).name
            finally:
                second.shutdown()

        spec = engines.offloading_spec
        self.assertEqual(found(spec(), spec(), "equal"), "HIT")
        for name, value in (("tp", 2), ("pp", 2), ("pcp", 2), ("dcp", 2), ("dtype", "float16"), ("order", "HND"), ("blocks", 2)):
            self.assertEqual(found(spec(), spec(**{name: value}), name), "MISS", name)

    def test_what_cannot_be_read_is_refused(self) -> None:
        pool = Pool(2)
        self.addCleanup(pool.close)
        with self.assertRaisesRegex(ValueError, "vllm-tier/2: dtype, tp cannot be read"):
            KvCacheTier(engines.offloading_spec(tp=None, dtype=None), pool.view, "T", address=self.server.address)

    def test_nothing_is_raised_into_the_scheduler(self) -> None:
        pool = Pool(2)
        tier = self.tier(pool, model=self.id())
        with self.assertLogs("kvcache.vllm", "WARNING") as logs:
            for job, (name, row) in enumerate(((b"k" * 5000, 0), (key(0), 7), (key(0), -1), (b"", 0))):
                self.assertEqual(tier.lookup(name, None).name, "MISS")
                tier.submit_store(engines.TransferJob(job, [name], [row]))
                tier.submit_load(engines.TransferJob(100 + job, [name], [row]))
            results = finish(tier, 8)
        self.assertEqual({each.success for each in results.values()}, {False})
        self.assertEqual(len(logs.output), 1)
        self.assertIn("a key of 5000 bytes; allowed: 1 to 4096", logs.output[0])
        self.assertFalse(tier.has_pending_work())

    def test_a_reset_drops_what_is_stored_or_finds_nothing_until_it_is(self) -> None:
        server = Server("64MiB")
        self.addCleanup(server.close)
        pool = Pool(4)
        tier, other = (self.tier(pool, model=self.id(), address=server.address, timeout=3) for _ in range(2))
        tier.submit_store(engines.TransferJob(1, [key(0)], [0]))
        finish(tier, 1)
        tier.drain_jobs()
        self.assertEqual(tier.lookup(key(0), None).name, "MISS")
        self.assertEqual(other.lookup(key(0), None).name, "MISS")
        tier.submit_store(engines.TransferJob(2, [key(0)], [0]))
        finish(tier, 1)
        self.assertEqual(other.lookup(key(0), None).name, "HIT")
        server.signal(signal.SIGSTOP)
        with self.assertLogs("kvcache.vllm", "WARNING") as logs:
            tier.drain_jobs()
        self.assertIn("asked again to drop", logs.output[0])
        self.assertEqual(tier.lookup(key(0), None).name, "MISS")
        tier.submit_store(engines.TransferJob(3, [key(1)], [1]))
        self.assertFalse(finish(tier, 1)[3].success)
        server.signal(signal.SIGCONT)

        def dropped() -> bool:
            tier.on_schedule_end()
            return other.lookup(key(0), None).name == "MISS" and not tier._reset.pending

        until(dropped, "the drop")
        tier.submit_store(engines.TransferJob(4, [key(1)], [1]))
        self.assertTrue(finish(tier, 1)[4].success)

    def request(self, tier: KvCacheTier, name: str, rows: List[int], hints: Any, beside: Any = None) -> None:
        """Stores keys by the number of their rows, as one request that ends before it is stored."""
        envelope = SimpleNamespace(actions=[SimpleNamespace(action_type="kvcache", payload=beside)]) if beside else None
        context = SimpleNamespace(req_id=name, kv_transfer_params=hints and {"kvcache": hints}, kv_hints=envelope)
        tier.on_new_request(context)
        for row in rows:
            tier.lookup(key(row), context)
        tier.submit_store(engines.TransferJob(1, [key(row) for row in rows], rows, req_context=context))
        tier.on_request_finished(context)
        self.assertTrue(finish(tier, 1)[1].success)

    def test_what_a_request_says_of_its_blocks_reaches_the_policy(self) -> None:
        server = Server("64MiB", "--set", "admission=always")
        self.addCleanup(server.close)
        pool = Pool(300)
        tier = self.tier(pool, model=self.id(), address=server.address)
        self.request(tier, "kept", [0, 1], {"retain": 60, "kind": "agent", "session": "a", "turn": 1})
        self.request(tier, "orchestrated", [2, 3], None, {"session": 7, "turn": 1})
        self.request(tier, "silent", [4, 5], None)
        until(lambda: server.meter("kv_hints_sessions") == 2, "the sessions")
        self.assertEqual(4, server.meter("kv_hints_said_total"), "labelled blocks")
        self.assertGreaterEqual(server.meter("kv_hints_pinned_bytes"), 2 * ROW)
        taken = server.meter("kv_hints_total", 'taken="yes"')
        tier.touch([key(4), key(5)], None)
        self.request(tier, "over", [6, 7], {"forget": True})
        until(lambda: server.meter("kv_hints_total", 'taken="yes"') == taken + 2, "a use and an end")
        for row in range(10, 250, 10):
            self.request(tier, str(row), list(range(row, row + 10)), None)
        there = [tier.lookup(key(row), None).name for row in range(8)]
        self.assertEqual(["HIT"] * 2, there[:2], "retained, while 60 MiB more were stored")
        self.assertEqual(["MISS"] * 2, there[6:], "forgotten, so they went first")

    def test_hints_that_are_wrong_are_told_once_and_cost_nothing(self) -> None:
        pool = Pool(2)
        tier = self.tier(pool, model=self.id())
        with self.assertLogs("kvcache.vllm", "WARNING") as logs:
            for hints in ({"retention": 5}, ["pin"], {"retain": "long"}, {"kind": "king"}, {"turn": 1.5}, {"retain": -1}):
                self.request(tier, "wrong", [0], hints)
            tier.touch([b"k" * 5000], None)
        self.assertEqual(1, len(logs.output), logs.output)
        self.assertIn("unknown hints ['retention']; allowed: kind, session, turn, last, retain", logs.output[0])
        self.assertEqual({}, tier._hinted)

    def test_private_memory_is_sent(self) -> None:
        pool = Pool(4, shared=False)
        with self.assertLogs("kvcache.vllm", "WARNING") as logs:
            tier = self.tier(pool, model=self.id())
        self.assertIn("sent over the connection", " ".join(logs.output))
        pool[0][:] = content(key(0), ROW)
        tier.submit_store(engines.TransferJob(1, [key(0)], [0]))
        finish(tier, 1)
        tier.submit_load(engines.TransferJob(2, [key(0)], [3]))
        self.assertTrue(finish(tier, 1)[2].success)
        self.assertEqual(pool[3], content(key(0), ROW))

    def test_nothing_in_the_scheduler_waits(self) -> None:
        pool = Pool(8)
        tier = self.tier(pool, model=self.id())
        me = threading.get_ident()

        def forbid(original):
            def call(*arguments: Any, **named: Any) -> Any:
                if threading.get_ident() == me:
                    raise AssertionError("the scheduler's thread waits")
                return original(*arguments, **named)

            return call

        with contextlib.ExitStack() as stack:
            for owner, name in (
                (Connection, "wait"),
                (Connection, "request"),
                (Connection, "_handshake"),
                (time, "sleep"),
                (threading.Condition, "wait"),
                (threading.Event, "wait"),
                (select, "select"),
            ):
                stack.enter_context(mock.patch.object(owner, name, forbid(getattr(owner, name))))
            for number in range(200):
                tier.lookup(key(number), None)
                tier.submit_store(engines.TransferJob(2 * number, [key(number)], [number % 8]))
                tier.submit_load(engines.TransferJob(2 * number + 1, [key(number)], [number % 8]))
                tier.on_schedule_end()
        finish(tier, 400)

    def test_a_server_that_is_gone_costs_hits_only(self) -> None:
        server = Server("64MiB")
        self.addCleanup(server.close)
        pool = Pool(4)
        tier = self.tier(pool, model=self.id(), address=server.address, timeout=3)
        tier.submit_store(engines.TransferJob(1, [key(0)], [0]))
        self.assertTrue(finish(tier, 1)[1].success)
        server.kill()
        tier.submit_load(engines.TransferJob(2, [key(0)], [1]))
        tier.submit_store(engines.TransferJob(3, [key(1)], [1]))
        results = finish(tier, 2, 10)
        self.assertEqual([results[2].success, results[3].success], [False, False])
        self.assertEqual(tier.lookup(key(0), None).name, "MISS")
        server.start()
        until(lambda: tier._client.connected, "the next session")
        tier.submit_store(engines.TransferJob(4, [key(2)], [2]))
        self.assertTrue(finish(tier, 1)[4].success)
        tier.on_request_finished(None)
        self.assertEqual(tier.lookup(key(2), None).name, "HIT")

    def test_an_engine_starts_without_its_server(self) -> None:
        pool = Pool(2)
        with self.assertLogs("kvcache.settings", "WARNING") as logs:
            tier = self.tier(pool, model=self.id(), address="127.0.0.1:1")
        self.assertIn("going on without it", " ".join(logs.output))
        self.assertEqual(tier.lookup(key(0), None).name, "MISS")
        tier.submit_store(engines.TransferJob(1, [key(0)], [0]))
        self.assertFalse(finish(tier, 1)[1].success)

    def test_settings_are_checked(self) -> None:
        pool = Pool(2)
        self.addCleanup(pool.close)
        with self.assertRaisesRegex(ValueError, r"unknown settings \['adress'\]; allowed: model, locality"):
            KvCacheTier(engines.offloading_spec(), pool.view, "T", adress="x")
        with self.assertRaisesRegex(ValueError, "locality = 'NEAR'; allowed: LOCAL, REMOTE"):
            KvCacheTier(engines.offloading_spec(), pool.view, "T", locality="NEAR")
        with self.assertRaisesRegex(ValueError, "1 dimensions; allowed: contiguous rows"):
            KvCacheTier(engines.offloading_spec(), pool.bytes, "T")

    def test_an_engine_that_is_killed_gives_its_memory_back(self) -> None:
        child = subprocess.Popen(
            [sys.executable, "-m", "tests.engine_process", self.server.address, "3", "1000000"],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert child.stdout is not None and self.server.process is not None
        child.stdout.readline()
        until(lambda: self.regions() == 1, "the engine's region in the server")
        child.send_signal(signal.SIGKILL)
        child.wait()
        for left in glob.glob(f"/dev/shm/kvcache-engine-{child.pid}-*"):
            os.unlink(left)
        child.stdout.close()
        until(lambda: self.regions() == 0, "the server to unmap the region")

    def regions(self) -> int:
        """The pools of engine processes that the server maps."""
        with open(f"/proc/{self.server.pid()}/maps", encoding="utf-8") as maps:
            return sum("kvcache-engine-" in line for line in maps)


class Tensor:
    """As much of a tensor as HiCache's pools show."""

    def __init__(self, view: memoryview) -> None:
        self.view = view
        self.nbytes = view.nbytes

    def data_ptr(self) -> int:
        return address_of(self.view)

    def contiguous(self) -> Tensor:
        return self

    def is_contiguous(self) -> bool:
        return True

    def numel(self) -> int:
        return self.nbytes

    def element_size(self) -> int:
        return 1


class HostPool:
    """A host pool of pages of a token: K and V apart (page first), or K and V of each layer (layer first)."""

    page_size = 1
    dtype = "bfloat16"

    def __init__(self, pages: int, pieces: int, piece: int, shared: bool = True) -> None:
        self.layout = "page_first" if pieces == 2 else "layer_first"
        self.pool = Pool(1, pages * pieces * piece, shared)
        self.kv_buffer = Tensor(self.pool.bytes)
        self.pages, self.pieces, self.piece = pages, pieces, piece

    def at(self, page: int, piece: int) -> int:
        if self.layout == "page_first":
            return (page * self.pieces + piece) * self.piece
        return (piece * self.pages + page) * self.piece

    def get_page_buffer_meta(self, indices: Any):
        base = address_of(self.pool.bytes)
        places = [base + self.at(page, piece) for page in indices for piece in range(self.pieces)]
        return places, [self.piece] * len(places)

    def page(self, page: int) -> bytes:
        return b"".join(
            self.pool.bytes[self.at(page, piece) : self.at(page, piece) + self.piece] for piece in range(self.pieces)
        )

    def fill(self, page: int, value: bytes) -> None:
        for piece in range(self.pieces):
            at = self.at(page, piece)
            self.pool.bytes[at : at + self.piece] = value[piece * self.piece : (piece + 1) * self.piece]


class Config:
    def __init__(self, address: str, model: str, rank: int = 0) -> None:
        self.tp_rank, self.tp_size, self.pp_rank, self.pp_size = rank, 2, 0, 1
        self.is_mla_model = False
        self.model_name = model
        self.extra_config = {"address": address, "timeout": 5, "interface_v1": 1}


class SglangTest(ServedTest):
    def backend(self, pool: Any, rank: int = 0) -> KvCacheHiCache:
        backend = KvCacheHiCache(Config(self.server.address, self.id(), rank), None)
        self.addCleanup(backend.close)
        if pool is not None:
            self.addCleanup(pool.pool.close)
            backend.register_mem_pool_host(pool)
        return backend

    def round_trip(self, pieces: int, shared: bool) -> None:
        """Through the host pool's memory; where that is private, with a word to the operator."""
        if shared:
            self.move_pages(pieces, shared)
            return
        with self.assertLogs("kvcache.sglang", "WARNING") as logs:
            self.move_pages(pieces, shared)
        self.assertIn('set "allocator": "shm"', logs.output[0])

    def move_pages(self, pieces: int, shared: bool) -> None:
        first, second = HostPool(32, pieces, 4096, shared), HostPool(32, pieces, 4096, shared)
        one, two = self.backend(first), self.backend(second)
        keys = ["%064x" % number for number in range(20)]
        for page, each in enumerate(keys):
            first.fill(page, content(each.encode(), pieces * 4096))
        self.assertEqual(two.batch_exists(keys), 0)
        self.assertEqual(one.batch_set_v1(keys[:15], list(range(15))), [True] * 15)
        self.assertEqual(two.batch_exists(keys), 15)
        loaded = two.batch_get_v1(keys, [31 - page for page in range(20)])
        self.assertEqual(loaded, [True] * 15 + [False] * 5)
        for page, each in enumerate(keys[:15]):
            self.assertEqual(second.page(31 - page), content(each.encode(), pieces * 4096))
        self.assertEqual(self.backend(HostPool(2, pieces, 4096), rank=1).batch_exists(keys), 0)

    def test_pages_of_two_pieces(self) -> None:
        self.round_trip(2, True)

    def test_pages_of_a_piece_for_each_layer(self) -> None:
        self.round_trip(64, True)

    def test_pages_in_private_memory_are_sent(self) -> None:
        self.round_trip(4, False)

    def test_tensors_without_a_host_pool(self) -> None:
        backend = self.backend(None)
        value = memoryview(bytearray(content(b"t", 8192)))
        target = memoryview(bytearray(8192))
        self.assertTrue(backend.batch_set(["t"], [Tensor(value)]))
        self.assertTrue(backend.exists("t"))
        found = backend.batch_get(["t", "u"], [Tensor(target), Tensor(target)])
        self.assertIsNotNone(found[0])
        self.assertIsNone(found[1])
        self.assertEqual(target, value)

    def test_pools_beside_keys_and_values(self) -> None:
        pool, states = HostPool(8, 2, 4096), HostPool(8, 2, 4096)
        backend = self.backend(pool)
        self.addCleanup(states.pool.close)
        backend.register_mem_host_pool_v2(states, "mamba")
        keys = ["%064x" % number for number in range(6)]
        self.assertEqual(backend.batch_set_v1(keys, list(range(6))), [True] * 6)
        states.fill(3, content(b"state", 8192))
        transfer = engines.PoolTransfer("mamba", [3], keys=[keys[3]], hit_policy="trailing_pages")
        self.assertEqual(backend.batch_set_v2([transfer]), {"mamba": [True]})
        answer = backend.batch_exists_v2(keys, [engines.PoolTransfer("mamba", keys=keys[-1:], hit_policy="trailing_pages")])
        self.assertEqual((answer.kv_hit_pages, answer.extra_pool_hit_pages), (4, {"kv": 6, "mamba": 4}))
        self.assertEqual(answer.restorable_prefix_pages, [4])
        answer = backend.batch_exists_v2(keys, [engines.PoolTransfer("mamba", keys=keys, hit_policy="all_pages")])
        self.assertEqual(answer.kv_hit_pages, 0)
        transfer.host_indices = [5]
        self.assertEqual(backend.batch_get_v2([transfer]), {"mamba": [True]})
        self.assertEqual(states.page(5), content(b"state", 8192))

    def test_a_server_that_is_gone_never_raises(self) -> None:
        server = Server("64MiB")
        backend = KvCacheHiCache(Config(server.address, self.id()), None)
        self.addCleanup(backend.close)
        pool = HostPool(4, 2, 4096)
        self.addCleanup(pool.pool.close)
        backend.register_mem_pool_host(pool)
        server.close()
        self.assertEqual(backend.batch_exists(["a", "b"]), 0)
        self.assertEqual(backend.batch_set_v1(["a", "b"], [0, 1]), [False, False])
        self.assertEqual(backend.batch_get_v1(["a", "b"], [0, 1]), [False, False])
        self.assertFalse(backend.set("a", Tensor(memoryview(bytearray(10)))))


class ObjectKey:
    def __init__(self, number: int, salt: str = "") -> None:
        self.chunk_hash = b"%032d" % number
        self.model_name, self.kv_rank, self.object_group_id, self.cache_salt = "llama", 1 << 24, 0, salt


class MemoryObject:
    def __init__(self, view: memoryview) -> None:
        self.view = view
        self.data_ptr = address_of(view)

    def get_size(self) -> int:
        return self.view.nbytes


class L1Memory:
    def __init__(self, pool: Pool) -> None:
        self.ptr, self.size, self.align_bytes = address_of(pool.bytes), pool.bytes.nbytes, 4096


class LmcacheTest(ServedTest):
    def adapter(self, pool: Pool, address: str = "") -> KvCacheL2Adapter:
        self.addCleanup(pool.close)
        adapter = KvCacheL2Adapter({"address": address or self.server.address, "timeout": 5}, L1Memory(pool))
        self.addCleanup(lambda: adapter._closed or adapter.close())
        return adapter

    def wait(self, event: int, result: Any) -> Any:
        """Waits as LMCache's controllers do: for the event, and then asks."""
        poller = select.poll()
        poller.register(event, select.POLLIN)
        end = time.monotonic() + 30
        while time.monotonic() < end:
            if poller.poll(1000):
                os.eventfd_read(event)
                answer = result()
                if answer not in (None, {}):
                    return answer
        raise AssertionError("no result")

    def look_up(self, adapter: KvCacheL2Adapter, keys: List[ObjectKey]) -> List[bool]:
        task = adapter.submit_lookup_and_lock_task(keys, None)
        event = adapter.get_lookup_and_lock_event_fd()
        return self.wait(event, lambda: adapter.query_lookup_and_lock_result(task)).bits

    def round_trip(self, shared: bool) -> None:
        salt = self.id()[-20:]
        first, second = Pool(8, shared=shared), Pool(8, shared=shared)
        one, two = self.adapter(first), self.adapter(second)
        keys = [ObjectKey(number, salt) for number in range(5)]
        for row in range(4):
            first[row][:] = content(keys[row].chunk_hash, ROW)
        task = one.submit_store_task(keys[:4], [MemoryObject(first[row]) for row in range(4)])
        stores = self.wait(one.get_store_event_fd(), one.pop_completed_store_tasks)
        self.assertTrue(stores[task].is_successful())
        self.assertEqual(int(stores[task]), 4 * ROW)
        self.assertEqual(self.look_up(two, keys), [True] * 4 + [False])
        task = two.submit_load_task(keys, [MemoryObject(second[7 - row]) for row in range(5)])
        bitmap = self.wait(two.get_load_event_fd(), lambda: two.query_load_result(task))
        self.assertEqual(bitmap.bits, [True] * 4 + [False])
        for row in range(4):
            self.assertEqual(second[7 - row], content(keys[row].chunk_hash, ROW))
        two.submit_unlock(keys)
        two.delete(keys[:1])
        self.assertEqual(self.look_up(one, keys), [False] + [True] * 3 + [False])
        self.assertIsNone(two.query_load_result(task))

    def test_objects_go_through_the_l1_memory(self) -> None:
        self.round_trip(True)

    def test_objects_in_private_memory_are_sent(self) -> None:
        self.round_trip(False)

    def test_the_three_events_differ(self) -> None:
        adapter = self.adapter(Pool(1))
        events = {
            adapter.get_store_event_fd(),
            adapter.get_lookup_and_lock_event_fd(),
            adapter.get_load_event_fd(),
        }
        self.assertEqual(len(events), 3)
        self.assertTrue(adapter.report_status()["is_healthy"])

    def test_a_server_that_is_gone_fails_tasks(self) -> None:
        server = Server("64MiB")
        self.addCleanup(server.close)
        pool = Pool(2)
        adapter = self.adapter(pool, server.address)
        server.kill()
        until(lambda: not adapter.report_status()["is_healthy"], "the end of the session")
        task = adapter.submit_store_task([ObjectKey(1)], [MemoryObject(pool[0])])
        stores = self.wait(adapter.get_store_event_fd(), adapter.pop_completed_store_tasks)
        self.assertFalse(stores[task].is_successful())
        self.assertEqual(self.look_up(adapter, [ObjectKey(1)]), [False])
        task = adapter.submit_load_task([ObjectKey(1)], [MemoryObject(pool[0])])
        self.assertEqual(self.wait(adapter.get_load_event_fd(), lambda: adapter.query_load_result(task)).bits, [False])

    def test_settings_are_checked(self) -> None:
        with self.assertRaisesRegex(ValueError, r"unknown settings \['host'\]; allowed: address, tenant"):
            KvCacheL2Adapter({"host": "x"})


class TwoProcessesTest(ServedTest):
    """Two engines store and load blocks of 16 KiB to 1 MiB; the server has room for a tenth of them."""

    def check(self, kind: str) -> None:
        jobs = str(300 * SCALE)
        children = [
            subprocess.Popen(
                [sys.executable, "-m", "tests.engine_process", self.server.address, str(seed), jobs, kind],
                stdout=subprocess.PIPE,
                text=True,
            )
            for seed in (1, 2)
        ]
        for child in children:
            out, _ = child.communicate(timeout=300 * SCALE)
            self.assertEqual(child.returncode, 0, out)
            loaded, wrong = (int(each) for each in out.split()[-2:])
            self.assertEqual(wrong, 0)
            self.assertGreater(loaded, 20)
            if SCALE > 1:
                print(f"{kind}: {loaded} blocks loaded, {wrong} wrong")

    def test_vllm(self) -> None:
        self.check("vllm")

    def test_sglang(self) -> None:
        self.check("sglang")

    def test_lmcache(self) -> None:
        self.check("lmcache")


if __name__ == "__main__":
    unittest.main()
