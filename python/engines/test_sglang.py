"""SGLang's own HiCache classes on the CPU, with a server of ours. Run by ``./kvcache test --engines sglang``.

These are SGLang's as released: StorageBackendFactory, the host pools of every kind that a CPU can have (MHA, MHA with
values of another size, MLA, Mamba, the rows of DeepSeek V4), HiCacheController with its backup and prefetch threads, and
what clears; and for the linker UnifiedRadixCache, its factory of linkers, and device pools on the CPU (MHA, MLA, SWA).
What a GPU is needed for is not here: copies between host pool and device (kernels of sgl-kernel), so the radix cache
above HiCache's controller is played by the test; DSA's indexer pool, whose constructor wants a pool of the device; pools
with states (Mamba) under the linker; streams; and a whole engine.

``KVCACHE_TEST_SCALE=10`` moves 10,000 random pages in place of 1,000, and has 1,000 faults in place of 100.
"""

from __future__ import annotations

import contextlib
import inspect
import logging
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import types
import unittest
from typing import Any, Dict, List, Optional
from unittest import mock

import msgspec
import torch
import zmq
from engines import sglang_pools as pools
from sglang.srt import runtime_context
from sglang.srt.disaggregation.kv_events import KVEventBatch
from sglang.srt.managers.cache_controller import HiCacheController
from sglang.srt.mem_cache import hicache_storage
from sglang.srt.mem_cache.hicache_storage import PoolHitPolicy, PoolName, PoolTransfer
from sglang.srt.mem_cache.hybrid_cache.hybrid_cache_controller import HybridCacheController
from sglang.srt.mem_cache.memory_pool_host import LogicalHostPool
from sglang.srt.mem_cache.unified_cache.storage_attachment import StorageAttachment
from sglang.srt.mem_cache.unified_cache.unified_cache_linker import UnifiedCacheLinker
from sglang.srt.mem_cache.utils import get_storage_hash_str, hash_str_to_int64
from tests import engines as doubles
from tests.faults import Faults, logged, secrets
from tests.serving import Cluster, ServedTest, Server, free_ports, until
from tests.test_events import replayed

from kvcache import sglang_compat
from kvcache.sglang import KvCacheHiCache
from kvcache.sglang_linker import KvCacheLinker

SCALE = int(os.environ.get("KVCACHE_TEST_SCALE", "1"))
PAGE = pools.PAGE


class SglangTest(ServedTest):
    host_bytes = "128MiB"

    def backend(self, pool: Any, server: Optional[Server] = None, extra: Any = None, **changes: Any) -> Any:
        settings = pools.config((server or self.server).address, changes.pop("model", self.id()), extra, **changes)
        made = pools.backend(settings, pool)
        self.addCleanup(made.close)
        return made


class PagesTest(SglangTest):
    def store_and_load(self, name: str, first: Any, second: Any, **changes: Any) -> None:
        one, two = self.backend(first, **changes), self.backend(second, **changes)
        keys = pools.keys_of(name, 6)
        for page in range(6):
            pools.fill(first, page, page)
        self.assertEqual(0, two.batch_exists(keys), name)
        self.assertEqual([True] * 4, one.batch_set_v1(keys[:4], pools.indices(first, range(4))), name)
        self.assertEqual(4, two.batch_exists(keys), name)
        at = [9, 3, 7, 5, 20, 21]
        self.assertEqual([True] * 4 + [False] * 2, two.batch_get_v1(keys, pools.indices(second, at)), name)
        for number, page in enumerate(at[:4]):
            self.assertTrue(pools.holds(second, page, number), f"{name} {number}")

    def test_pages_of_every_layout_are_equal(self) -> None:
        for (name, first), (_, second) in zip(pools.layouts(), pools.layouts()):
            with self.subTest(name):
                self.store_and_load(name, first, second, is_mla_model=name.startswith("mla"))

    def test_events_name_pages_as_sglangs_own_do(self) -> None:
        replay, publish = (f"tcp://127.0.0.1:{port}" for port in free_ports(2))
        settings = {"events.publish": publish, "events.replay": replay, "events.media": "sglang"}
        server = Server("128MiB", *(word for name, value in settings.items() for word in ("--set", f"{name}={value}")))
        self.addCleanup(server.close)
        keys: List[str] = []
        for page in range(6):
            keys.append(get_storage_hash_str(list(range(page * PAGE, (page + 1) * PAGE)), keys[-1] if keys else None))
        pool = pools.mha("page_first")
        self.assertEqual([True] * 6, self.backend(pool, server).batch_set_v1(keys, pools.indices(pool, range(6))))
        decoder = msgspec.msgpack.Decoder(KVEventBatch)

        def told(payloads: List[bytes]) -> List[Any]:
            return [event for payload in payloads for event in decoder.decode(payload).events]

        with zmq.Context() as context:
            events = told(replayed(context, replay, lambda payloads: len(told(payloads)) == 6))
        hashes = [hash_str_to_int64(key) for key in keys]
        self.assertTrue(any(each < 0 for each in hashes), "SGLang's hashes are signed")
        self.assertEqual([[each] for each in hashes], [event.block_hashes for event in events])
        self.assertEqual({("CPU_PINNED", PAGE)}, {(event.medium, event.block_size) for event in events})

    def test_private_memory_is_sent(self) -> None:
        for name, make in (("mha", pools.mha), ("mla", pools.mla)):
            for layout in ("layer_first", "page_first", "page_unified"):
                with self.assertLogs("kvcache.sglang", "WARNING") as logs:
                    self.store_and_load(f"{name}-{layout}", make(layout, "default"), make(layout, "default"))
                self.assertIn('set "allocator": "shm"', logs.output[0])

    def test_flat_pages_are_right_and_apart_from_gathered_ones(self) -> None:
        """Without interface_v1. In layer_first the bytes of both forms are in another order, and as many."""
        for layout in ("layer_first", "page_first", "page_first_direct"):
            pool = pools.mha(layout)
            flat, gathered = self.backend(pool, extra={"interface_v1": 0}), self.backend(pool)
            keys = pools.keys_of(layout, 3)
            for page in range(3):
                pools.fill(pool, page, page)
            self.assertTrue(flat.batch_set(keys, [pool.get_data_page(page * PAGE) for page in range(3)]))
            self.assertEqual((3, 0), (flat.batch_exists(keys), gathered.batch_exists(keys)))
            read = flat.batch_get(keys, [pool.get_dummy_flat_data_page() for _ in keys])
            for number, page in enumerate(read):
                pool.set_from_flat_data_page((9 + number) * PAGE, page)
                self.assertTrue(pools.holds(pool, 9 + number, number))

    def test_a_layout_that_sglang_does_not_tell_is_refused_at_registration(self) -> None:
        pool = pools.mha("page_first")
        pool.layout = "page_last"
        with self.assertRaisesRegex(ValueError, 'the pool "kv" of the layout .page_last.: .*choose another --hicache-mem'):
            self.backend(pool)

    def test_another_process_finds_them_after_a_restart_and_through_a_kill(self) -> None:
        with tempfile.TemporaryDirectory(prefix="kvcache-sglang-") as folder:
            server = Server("128MiB", "--disk", f"{folder}/disk:256MiB", "--set", "admission=always")
            self.addCleanup(server.close)
            mine = []
            for name, pool in pools.layouts():
                made = self.backend(pool, server, is_mla_model=name.startswith("mla"))
                for page in range(6):
                    pools.fill(pool, page, page)
                self.assertEqual([True] * 6, made.batch_set_v1(pools.keys_of(name, 6), pools.indices(pool, range(6))), name)
                mine.append((name, pool, made))
            server.signal(signal.SIGTERM)  # what was stored is on the disk when it has ended
            server.process.wait(60)
            server.start()
            child = [sys.executable, "-W", "ignore", "-m", "engines.sglang_pools", server.address, self.id()]
            done = subprocess.run(child, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
            self.assertEqual(0, done.returncode, done.stdout[-4000:])
            self.assertEqual(len(mine), done.stdout.count("6 [True, True, True, True, True, True]"), done.stdout[-4000:])
            server.kill()
            for name, pool, made in mine:
                self.assertEqual(0, made.batch_exists(pools.keys_of(name, 6)))
                self.assertEqual([False] * 6, made.batch_get_v1(pools.keys_of(name, 6), pools.indices(pool, range(9, 15))))
            server.start()
            for name, pool, made in mine:
                until(lambda made=made: made._client.connected, "the next session")
                for number, good in enumerate(made.batch_get_v1(pools.keys_of(name, 6), pools.indices(pool, range(9, 15)))):
                    self.assertTrue(not good or pools.holds(pool, 9 + number, number), name)

    def test_random_pages_with_evictions(self) -> None:
        """Of 1,600 keys a third has room. Two engines, one of which sends its pages."""
        server = Server("32MiB", "--set", "admission=always")
        self.addCleanup(server.close)
        first, second = pools.mha("page_head"), pools.mha("page_head", "default")
        both = [(pool, self.backend(pool, server)) for pool in (first, second)]
        chosen = random.Random(5)
        loaded = moved = wrong = 0
        while moved < 1000 * SCALE:
            pool, made = chosen.choice(both)
            start = int(chosen.random() ** 2 * 1600)
            keys = [f"page-{number}" for number in range(start, start + chosen.randint(1, 16))]
            there = made.batch_exists(keys)
            places = chosen.sample(range(32), len(keys))
            for place, number in zip(places[there:], range(start + there, start + len(keys))):
                pools.fill(pool, place, number)
            if there:
                good = made.batch_get_v1(keys[:there], pools.indices(pool, places[:there]))
                loaded += sum(good)
                wrong += sum(ok and not pools.holds(pool, at, start + n) for n, (ok, at) in enumerate(zip(good, places)))
            if there < len(keys):
                made.batch_set_v1(keys[there:], pools.indices(pool, places[there:]))
            moved += len(keys)
        self.assertEqual(0, wrong)
        self.assertGreater(loaded, 100)
        if SCALE > 1:
            print(f"{moved} pages, {loaded} loaded, {wrong} wrong")


class Controller:
    """SGLang's HiCacheController with its threads; what its radix cache would do at the scheduler's is done here."""

    def __init__(self, address: str, model: str, pool: Any, **extra: Any) -> None:
        pools.one_rank()
        device = types.SimpleNamespace(
            device="cpu", layer_num=pools.LAYERS, register_layer_transfer_counter=lambda counter: None
        )
        settings = pools.config(address, model, extra).extra_config
        self.pool = pool
        self.real = HiCacheController(
            types.SimpleNamespace(get_kvcache=lambda: device),
            pool,
            PAGE,
            None,
            threading.Event(),
            storage_backend="dynamic",
            model_name=model,
            storage_backend_extra_config=settings,
            prefetch_threshold=PAGE,
        )
        self.backend: KvCacheHiCache = self.real.storage_backend

    def store(self, tokens: List[int], page: int) -> int:
        """Backs pages up from one on; returns how many tokens of them."""
        hashes = get_storage_hash_str(tokens, None, page_size=PAGE)
        where = pools.indices(self.pool, range(page, page + len(hashes)))
        self.real.write_storage(where, tokens, hash_value=hashes)
        return self.real.ack_backup_queue.get(timeout=60).completed_tokens

    def load(self, tokens: List[int], page: int) -> int:
        """Prefetches into pages from one on; returns how many tokens."""
        self.real.prefetch("request", tokens)
        operation = self.real.prefetch_hit_queue.get(timeout=60)
        if operation.storage_hit_count == 0:
            return 0
        hits = operation.storage_hit_count // PAGE
        operation.host_indices = pools.indices(self.pool, range(page, page + hits))
        self.real.prefetch_buffer.put(operation)
        done = 0
        while True:
            ack = self.real.ack_prefetch_queue.get(timeout=60)
            done = ack.completed_tokens if ack.completed_tokens is not None else done
            if ack.completed_req:
                return done

    def close(self) -> None:
        self.real.detach_storage_backend()


class ControllerTest(SglangTest):
    def test_pages_go_through_sglangs_own_threads(self) -> None:
        for settings in ({"interface_v1": 1}, {"interface_v1": 0}):
            one, two = (
                Controller(self.server.address, self.id(), pools.mha("layer_first"), **settings) for _ in range(2)
            )
            self.addCleanup(one.close)
            self.addCleanup(two.close)
            tokens = list(range(10 * PAGE))
            self.assertEqual(0, two.load(tokens, 0))
            for page in range(10):
                pools.fill(one.pool, page, page)
            self.assertEqual(8 * PAGE, one.store(tokens[: 8 * PAGE], 0))
            self.assertEqual(8 * PAGE, two.load(tokens, 20))
            for page in range(8):
                self.assertTrue(pools.holds(two.pool, 20 + page, page))

    def test_random_faults_are_misses_and_raise_nothing_into_sglangs_threads(self) -> None:
        files = self.enterContext(secrets())
        server = Server("32MiB", "--set", f"transport.secret_file={files[0]}")
        self.addCleanup(server.close)
        engines = []
        for allocator, secret in (("shm", files[0]), ("default", files[0]), ("shm", files[1])):
            pool = pools.mha("page_first", allocator)
            engines.append(Controller(server.address, self.id(), pool, timeout=0.5, secret_file=secret))
            self.addCleanup(engines[-1].close)
        engine, _, stranger = engines
        faults = Faults(server, seed=7)
        chosen = faults.chosen
        loads = {each: 0 for each in engines}
        wrong = 0

        def work(kind: str) -> None:
            nonlocal wrong
            if kind == "key":
                bad = ["k" * 5000, "good"]
                where = pools.indices(engine.pool, range(2))
                self.assertEqual(0, engine.backend.batch_exists(bad))
                self.assertEqual([False] * 2, engine.backend.batch_set_v1(bad, where))
                self.assertEqual([False] * 2, engine.backend.batch_get_v1(bad, where))
                self.assertEqual([False] * 2, engine.backend.batch_get_v1(["a", "b"], where[:PAGE]))
            each = stranger if kind == "password" else chosen.choice(engines[:2])
            seed = chosen.randrange(40)
            tokens = list(range(seed * 1000, seed * 1000 + (20 if kind == "full" else 4) * PAGE))
            got = each.load(tokens, 0) // PAGE
            loads[each] += got
            wrong += sum(not pools.holds(each.pool, page, seed * 100 + page) for page in range(got))
            for page in range(len(tokens) // PAGE):
                pools.fill(each.pool, page, seed * 100 + page)
            each.store(tokens, 0)

        with logged("sglang") as theirs, logged("kvcache") as ours:
            faults.run(100 * SCALE, work, lambda: all(each.backend._client.connected for each in engines[:2]))
        print(f"sglang, {faults.told()}: {[*loads.values()]} pages loaded", flush=True)
        self.assertEqual(0, loads[stranger])
        self.assertEqual(0, wrong)
        self.assertGreater(sum(loads.values()), 20)
        raised = [record.getMessage() for record in theirs if record.exc_info or record.levelno >= logging.ERROR]
        self.assertEqual([], raised)
        told = [record.getMessage() for record in ours if "kvcache.sglang" == record.name]
        refused = [each for each in told if "refused" in each]
        self.assertEqual(1, len(refused), told)
        self.assertIn("a key of 5000 bytes; allowed: 1 to 4096", refused[0])
        self.assertGreater(engine.backend.refused, 10)
        self.assertGreater(engine.backend.failed, 0)
        self.assertLess(len(told), faults.total() // 2)

    def test_a_wrong_password_is_misses(self) -> None:
        with tempfile.NamedTemporaryFile("w") as secret, tempfile.NamedTemporaryFile("w") as wrong:
            secret.write("right" * 4)
            secret.flush()
            wrong.write("wrong" * 4)
            wrong.flush()
            os.chmod(secret.name, 0o600)
            server = Server("32MiB", "--set", f"transport.secret_file={secret.name}")
            self.addCleanup(server.close)
            with self.assertLogs("kvcache.settings", "WARNING"):
                engine = Controller(server.address, self.id(), pools.mha("page_first"), secret_file=wrong.name)
            self.addCleanup(engine.close)
            tokens = list(range(4 * PAGE))
            self.assertEqual(0, engine.store(tokens, 0))
            self.assertEqual(0, engine.load(tokens, 0))
            good = Controller(server.address, self.id(), pools.mha("page_first"), secret_file=secret.name)
            self.addCleanup(good.close)
            self.assertEqual(4 * PAGE, good.store(tokens, 0))


class StatsTest(SglangTest):
    def test_copies_are_counted_where_sglang_asks_for_it(self) -> None:
        pool = pools.mha("page_first")
        self.assertIsNone(self.backend(pool).get_stats())
        made = self.backend(pool, enable_storage_metrics=True)
        keys = pools.keys_of("stats", 4)
        made.batch_set_v1(keys, pools.indices(pool, range(4)))
        made.batch_get_v1(keys[:3], pools.indices(pool, range(3)))
        told = made.get_stats()
        self.assertEqual(([3], [4]), (told.prefetch_pgs, told.backup_pgs))
        self.assertGreater(min(*told.prefetch_bandwidth, *told.backup_bandwidth), 0)
        self.assertEqual([], made.get_stats().backup_pgs)


class NamespaceTest(SglangTest):
    def names(self, pool: Any = None, extra: Any = None, **changes: Any) -> Any:
        settings = pools.config(self.server.address, changes.pop("model", "m"), extra, **changes)
        made = KvCacheHiCache(settings)
        try:
            made.register_mem_pool_host(pools.mha("page_first") if pool is None else pool)
            return made._of("kv").digest
        finally:
            made.close()

    def test_each_single_difference_separates_and_equal_settings_share(self) -> None:
        base = self.names()
        self.assertEqual(base, self.names())
        self.assertEqual(base, self.names(dp_rank=3), "replicas share")
        seen = {base}
        differences: List[Dict[str, Any]] = [
            {"model": "n"},
            {"tp_size": 2},
            {"tp_size": 2, "tp_rank": 1},
            {"pp_size": 2},
            {"pp_size": 2, "pp_rank": 1},
            {"attn_cp_size": 2},
            {"attn_cp_size": 2, "attn_cp_rank": 1},
            {"is_mla_model": True},
            {"tp_lcm_size": 4},
            {"tp_lcm_size": 4, "should_split_heads": True},
            {"extra": {"salt": "a"}},
            {"extra": {"tenant": "other"}},
            {"extra": {"interface_v1": 0}},
            {"pool": pools.mha("page_first", dtype=torch.float16)},
            {"pool": pools.mha("page_head")},
            {"pool": pools.mha("page_first_direct")},
            {"pool": pools.mha("layer_first")},
            {"pool": pools.mha("page_unified")},
        ]
        for difference in differences:
            name = self.names(**difference)
            self.assertNotIn(name, seen, str(difference))
            seen.add(name)
        page = pools.mha("page_first")
        page.page_size = PAGE // 2
        self.assertNotIn(self.names(page), seen)

    def test_ranks_of_mla_share_and_shards_of_dcp_do_not(self) -> None:
        def of(**changes: Any) -> Any:
            return self.names(pools.mla("page_first"), is_mla_model=True, **changes)

        self.assertEqual(of(tp_size=4), of(tp_size=4, tp_rank=3))
        dcp = {"tp_size": 4, "dcp_size": 2, "logical_page_size": 2 * PAGE}
        shards = [of(tp_rank=rank, dcp_rank=rank % 2, **dcp) for rank in range(4)]
        self.assertEqual(shards[:2], shards[2:])
        self.assertEqual(3, len({*shards, of(tp_size=4)}))

    def test_pools_that_ranks_have_in_parts_are_apart_though_the_model_is_mla(self) -> None:
        for name, make in (("mamba", pools.mamba), ("draft", lambda: pools.mha("page_first"))):
            told = set()
            for rank in (0, 1):
                made = self.backend(pools.mla("page_first"), is_mla_model=True, tp_size=2, tp_rank=rank)
                made.register_mem_host_pool_v2(make(), PoolName(name))
                told.add(made._of(name).digest)
            self.assertEqual(2, len(told), name)

    def test_both_fp8_types_are_apart_or_refused(self) -> None:
        def of(told: Any) -> Any:
            model = types.SimpleNamespace(kv_cache_dtype=told, revision="r", quantization=None, model_path="/m")
            with mock.patch.object(runtime_context, "get_model", lambda: model):
                return self.names(pools.mha("page_first", dtype=torch.uint8))

        self.assertEqual(of("fp8_e4m3"), of("fp8_e4m3"))
        self.assertNotEqual(of("fp8_e4m3"), of("fp8_e5m2"))
        with self.assertRaisesRegex(ValueError, "sglang.*: dtype cannot be read"):
            self.names(pools.mha("page_first", dtype=torch.uint8))
        with self.assertRaisesRegex(ValueError, 'model_name|model cannot be read.*set "model"'):
            self.names(model=None)

    def test_what_sglang_was_started_with_separates(self) -> None:
        def of(extra: Any = None, **changes: Any) -> Any:
            told = {"kv_cache_dtype": "auto", "revision": None, "quantization": None, "model_path": "/m", **changes}
            with mock.patch.object(runtime_context, "get_model", lambda: types.SimpleNamespace(**told)):
                return self.names(extra=extra)

        told = [of(), of(revision="a"), of(quantization="awq"), of(model_path="/other")]
        self.assertEqual(4, len(set(told)))
        same = {"model": "the same"}
        self.assertEqual(of(same), of(same, model_path="/elsewhere"), "a name of one's own is in place of the path")

    def test_settings_are_those_of_sglang(self) -> None:
        from sglang.srt.arg_groups.fields import model, spec

        for fields, names in (
            (model.Model, ("model_path", "revision", "quantization", "kv_cache_dtype")),
            (spec.Spec, ("speculative_draft_model_path", "speculative_draft_kv_cache_dtype")),
        ):
            self.assertLessEqual(set(names), set(fields.__annotations__))


class ClearTest(SglangTest):
    def clear(self, backend: Any) -> bool:
        """As /clear_hicache_storage_backend does it."""
        controller = types.SimpleNamespace(enable_storage=True, storage_backend=backend)
        controller.clear_storage_backend = lambda: HybridCacheController.clear_storage_backend(controller)
        return StorageAttachment.clear(types.SimpleNamespace(_cache=types.SimpleNamespace(cache_controller=controller)))

    def test_nothing_is_found_after_a_clear(self) -> None:
        server = Server("64MiB")
        self.addCleanup(server.close)
        pool, states = pools.mha("page_first"), pools.mamba()
        one, other = self.backend(pool, server), self.backend(pools.mha("page_first"), server)
        one.register_mem_host_pool_v2(states, PoolName.MAMBA)
        stranger = self.backend(pool, server, model="another")
        keys, where = pools.keys_of("c", 4), pools.indices(pool, range(4))

        def store() -> None:
            self.assertEqual([True] * 4, one.batch_set_v1(keys, where))
            moved = one.batch_set_v2([PoolTransfer(PoolName.MAMBA, host_indices=torch.arange(4), keys=keys)])
            self.assertEqual({PoolName.MAMBA: [True] * 4}, moved)

        store()
        stranger.batch_set_v1(keys, where)
        self.assertEqual(4, other.batch_exists(keys))
        self.assertTrue(self.clear(one))
        self.assertEqual((0, 0), (one.batch_exists(keys), other.batch_exists(keys)))
        self.assertEqual([False] * 4, one._each_present("mamba", keys))
        self.assertEqual(4, stranger.batch_exists(keys), "another model's pages stay")
        store()
        server.signal(signal.SIGSTOP)
        with self.assertLogs("sglang", "ERROR") as logs:
            self.assertFalse(self.clear(one))
        self.assertIn("it is asked again to drop", logs.output[0])
        self.assertEqual(0, one.batch_exists(keys))
        server.signal(signal.SIGCONT)
        until(lambda: one._client.connected, "the next session")
        until(lambda: one.batch_set_v1(keys[:1], where[:PAGE]) == [True], "the drop")
        self.assertEqual(1, one.batch_exists(keys))


class PoolsTest(SglangTest):
    def test_every_pool_of_sglang_moves(self) -> None:
        model = types.SimpleNamespace(kv_cache_dtype="auto", revision=None, quantization=None, model_path="/m")
        pool = pools.mha("page_first")
        with mock.patch.object(runtime_context, "get_model", lambda: model):
            made = self.backend(pool)
            beside = {}
            for name in PoolName:
                if name == PoolName.KV:
                    continue
                if name == PoolName.MAMBA:
                    beside[name] = pools.mamba(beside=True)
                elif name in (PoolName.DRAFT, PoolName.DRAFT_SWA, PoolName.SWA, PoolName.AUXILIARY_SWA):
                    beside[name] = pools.mha("page_first")
                else:
                    beside[name] = pools.rows(str(name), random.choice(("layer_first", "page_first")))
                made.register_mem_host_pool_v2(beside[name], name)
        keys = pools.keys_of("v2", 5)
        stored, loads = [], []
        for seed, (name, each) in enumerate(beside.items()):
            for page in range(5):
                pools.fill(each, page, 100 * seed + page)
            stored.append(PoolTransfer(name, host_indices=pools.indices(each, range(5)), keys=keys))
            loads.append(PoolTransfer(name, host_indices=pools.indices(each, range(9, 14)), keys=keys))
        self.assertEqual({name: [True] * 5 for name in beside}, made.batch_set_v2(stored))
        self.assertEqual({name: [True] * 5 for name in beside}, made.batch_get_v2(loads))
        for seed, (name, each) in enumerate(beside.items()):
            for page in range(5):
                self.assertTrue(pools.holds(each, 9 + page, 100 * seed + page), name)
        self.assertEqual(len(PoolName) - 1, len({made._of(str(name)).digest for name in beside}))
        self.assertEqual(0, made.batch_exists(keys), "no pages of another pool")

    def prefix(self, made: Any, keys: List[str], *transfers: PoolTransfer) -> Any:
        answer = made.batch_exists_v2(keys, list(transfers))
        return answer.kv_hit_pages, answer.extra_pool_hit_pages, answer.restorable_prefix_pages

    def test_prefixes_by_the_rules_of_all_pools(self) -> None:
        pool, states, window = pools.mha("page_first"), pools.mamba(), pools.mha("page_head")
        for allocator in ("shm", "default"):
            made = self.backend(pool, model=f"{self.id()} {allocator}")
            made.register_mem_host_pool_v2(states, PoolName.MAMBA)
            made.register_mem_host_pool_v2(window, PoolName.SWA)
            keys = pools.keys_of(allocator, 8)
            made.batch_set_v1(keys[:7], pools.indices(pool, range(7)))
            for at in (2, 4):
                made.batch_set_v2([PoolTransfer(PoolName.MAMBA, host_indices=torch.tensor([at]), keys=[keys[at]])])
            made.batch_set_v2([PoolTransfer(PoolName.SWA, host_indices=pools.indices(window, range(1, 5)), keys=keys[1:5])])
            last = PoolTransfer(PoolName.MAMBA, keys=["any"], hit_policy=PoolHitPolicy.TRAILING_PAGES)
            two = PoolTransfer(PoolName.SWA, keys=["any"] * 2, hit_policy=PoolHitPolicy.TRAILING_PAGES)
            whole = PoolTransfer(PoolName.SWA)
            absent = PoolTransfer(PoolName.DRAFT)
            groups = PoolTransfer(
                PoolName.SWA, keys=keys[1:7], hit_policy=PoolHitPolicy.BLOCK_GROUPS, block_pages=2, group_pages=2
            )
            kv = {"kv": 7}
            self.assertEqual((7, kv, [*range(1, 8)]), self.prefix(made, keys))
            self.assertEqual((5, {**kv, "mamba": 5}, [3, 5]), self.prefix(made, keys, last))
            self.assertEqual((5, {**kv, "mamba": 5, "swa": 5}, [3, 5]), self.prefix(made, keys, last, two))
            self.assertEqual((0, kv, []), self.prefix(made, keys, whole))
            self.assertEqual((0, kv, []), self.prefix(made, keys, absent), "a pool that is not registered has nothing")
            self.assertEqual((7, {**kv, "swa": 4}, [*range(1, 8)]), self.prefix(made, keys, groups), "gates nothing")

    def test_transfers_that_take_another_pools_pages(self) -> None:
        pool, window = pools.mha("page_first"), pools.mha("page_head")
        made = self.backend(pool)
        for each, name in ((window, PoolName.SWA), (window, PoolName.DRAFT_SWA)):
            made.register_mem_host_pool_v2(each, name)
        keys, where = pools.keys_of("from", 3), pools.indices(window, range(3))
        source = PoolTransfer(PoolName.SWA, host_indices=where, keys=keys)
        derived = PoolTransfer(PoolName.DRAFT_SWA, indices_from_pool=PoolName.SWA)
        alone = PoolTransfer(PoolName.DRAFT_SWA, indices_from_pool=PoolName.KV)
        self.assertEqual({"swa": [True] * 3, "draft_swa": [True] * 3}, made.batch_set_v2([derived, source]))
        self.assertEqual({"draft_swa": []}, made.batch_get_v2([alone]))
        unknown = PoolTransfer(PoolName.INDEXER, host_indices=where, keys=keys)
        self.assertEqual({"indexer": [False] * 3}, made.batch_get_v2([unknown]))

    def test_an_anchor_without_bytes_holds_every_page(self) -> None:
        """DeepSeek V4: pools beside it have all bytes, and decide."""
        made = self.backend(LogicalHostPool(64 * PAGE, PAGE))
        beside = pools.mha("page_first")
        made.register_mem_host_pool_v2(beside, PoolName.DEEPSEEK_V4_C4)
        keys, where = pools.keys_of("anchor", 4), pools.indices(beside, range(4))
        self.assertEqual([True] * 4, made.batch_set_v1(keys, where))
        self.assertEqual(0, made.batch_exists_v2(keys, [PoolTransfer(PoolName.DEEPSEEK_V4_C4)]).kv_hit_pages)
        made.batch_set_v2([PoolTransfer(PoolName.DEEPSEEK_V4_C4, host_indices=where[: 3 * PAGE], keys=keys[:3])])
        self.assertEqual(3, made.batch_exists_v2(keys, [PoolTransfer(PoolName.DEEPSEEK_V4_C4)]).kv_hit_pages)


class LinkerTest(SglangTest):
    """SGLang's UnifiedRadixCache and its linker factory, with loads by layer."""

    def unified(self, pool: Any, server: Optional[Server] = None, **extra: Any) -> pools.Unified:
        made = pools.Unified((server or self.server).address, extra.pop("model", self.id()), pool, **extra)
        self.addCleanup(made.close)
        return made

    def test_pages_come_back_layer_by_layer(self) -> None:
        for name, make in (("mha", pools.device_mha), ("mla", pools.device_mla), ("swa", pools.device_swa)):
            with self.subTest(name):
                one, two = self.unified(make()), self.unified(make())
                tokens = list(range(20 * PAGE))
                self.assertEqual((0, None, []), two.load(tokens))
                self.assertTrue(one.store(tokens))
                self.assertEqual((20 * PAGE, True, []), two.load([*tokens, 7777]))
                self.assertEqual((20 * PAGE, True, []), two.load([*tokens, *range(9000, 9100)]))
                self.assertEqual((0, 0, 0), (two.linker.failed, two.linker.refused, one.linker.failed))
                one.forget()
                self.assertEqual((20 * PAGE, True, []), one.load(tokens))

    def test_first_layers_are_there_while_the_last_are_on_their_way(self) -> None:
        engine = self.unified(pools.device_mha())
        tokens = list(range(8 * PAGE))
        self.assertTrue(engine.store(tokens))
        submit, held = engine.linker._mover.submit, threading.Event()
        counter, seen = engine.linker.layer_done_counter, []

        def slow(store: bool, values: Any, done: Any) -> None:
            last = values[0][0].endswith(b"/7")
            submit(store, values, (lambda *told: (held.wait(30), done(*told))) if last else done)

        def wait(layer: int) -> None:
            if layer == 9 and not held.is_set():
                seen.append(layer)
                held.set()
            type(counter).wait_until(counter, layer)

        with mock.patch.object(engine.linker._mover, "submit", slow), mock.patch.object(counter, "wait_until", wait):
            engine.forget()
            self.assertEqual((8 * PAGE, True, []), engine.load([*tokens, 7777]))
        self.assertEqual([9], seen, "layers 0 to 8 were used before the last step")

    def test_pages_that_go_after_the_look_up_end_their_requests_alone(self) -> None:
        engine = self.unified(pools.device_mha())
        tokens = list(range(8 * PAGE))
        self.assertTrue(engine.store(tokens))
        keys = get_storage_hash_str(tokens, None, page_size=PAGE)
        engine.forget()
        gone = engine.linker._step_name("kv", keys[5], 3)
        with self.assertLogs("sglang", "ERROR") as logs:
            count, landed, wrong = engine.load(tokens, lambda: engine.linker._namespace.delete(gone))
        self.assertEqual((8 * PAGE, False), (count, landed))
        self.assertEqual({4}, {*wrong}, "of the fourth step")
        self.assertEqual((1, 0), (engine.linker.lost, engine.linker.failed))
        self.assertIn("aborting 1 request(s)", logs.output[0])
        self.assertEqual((5 * PAGE, True, []), engine.load(tokens), "a page that lacks layers is a miss")
        self.assertTrue(engine.store(tokens))
        engine.forget()
        self.assertEqual((8 * PAGE, True, []), engine.load(tokens))

    def test_a_load_that_is_cancelled_is_not_begun(self) -> None:
        engine = self.unified(pools.device_mha())
        tokens = list(range(4 * PAGE))
        self.assertTrue(engine.store(tokens))
        engine.forget()
        count, landed, wrong = engine.load(tokens, lambda: engine.cache.linker.release_request("request-1"))
        self.assertEqual((4 * PAGE, True), (count, landed))
        self.assertEqual({*range(10)}, {*wrong})
        self.assertFalse(engine.linker.cancel_queued_load("request-1"))

    def test_without_shared_memory_pages_are_sent(self) -> None:
        with mock.patch("kvcache.client.Client._map", lambda *_: None):
            one, two = self.unified(pools.device_mha()), self.unified(pools.device_mha())
            tokens = list(range(20 * PAGE))
            self.assertTrue(one.store(tokens))
            self.assertFalse(one.linker._client.shares_memory)
            self.assertEqual((20 * PAGE, True, []), two.load(tokens))

    def test_a_reset_drops_and_other_models_share_nothing(self) -> None:
        server = Server("64MiB")
        self.addCleanup(server.close)
        one, other = self.unified(pools.device_mha(), server), self.unified(pools.device_mha(), server)
        extras: List[Any] = [{"model": "another"}, {"salt": "a"}]
        shapes: List[Any] = [{"dtype": torch.float16}, {"layers": 9}]
        strangers = [self.unified(pools.device_mha(), server, **extra) for extra in extras]
        strangers += [self.unified(pools.device_mha(**shape), server) for shape in shapes]
        self.assertEqual(5, len({one.linker._namespace.digest, *(each.linker._namespace.digest for each in strangers)}))
        tokens = list(range(4 * PAGE))
        self.assertTrue(one.store(tokens))
        self.assertTrue(strangers[0].store(tokens))
        self.assertEqual(0, strangers[1].load(tokens)[0])
        one.cache.reset()
        strangers[0].forget()
        self.assertEqual((0, 4 * PAGE), (other.load(tokens)[0], strangers[0].load(tokens)[0]))
        self.assertTrue(other.store(tokens))
        server.signal(signal.SIGSTOP)
        with self.assertLogs("kvcache.sglang_linker", "WARNING") as logs:
            one.cache.reset()
        self.assertIn("it is asked again to drop", logs.output[0])
        self.assertEqual(0, one.load(tokens)[0])
        server.signal(signal.SIGCONT)
        until(lambda: other.linker._client.connected and one.linker._client.connected, "the next sessions")
        until(lambda: one.load(tokens)[0] == 0 and not one.linker._reset.pending, "the drop")
        other.forget()
        self.assertEqual(0, other.load(tokens)[0])

    def test_random_pages_with_evictions(self) -> None:
        """Of 1,600 pages a third has room. Two engines, one of which sends its pages."""
        server = Server("32MiB", "--set", "admission=always")
        self.addCleanup(server.close)
        engines = [self.unified(pools.device_mha(), server)]
        with mock.patch("kvcache.client.Client._map", lambda *_: None):
            engines.append(self.unified(pools.device_mha(), server))
        chosen = random.Random(11)
        moved = loaded = lost = 0
        while moved < (1000 * SCALE if SCALE > 1 else 300):
            engine = chosen.choice(engines)
            prompt = int(chosen.random() ** 2 * 100)
            tokens = list(range(prompt * 1000, prompt * 1000 + chosen.randint(1, 16) * PAGE))
            engine.forget()
            count, landed, wrong = engine.load(tokens)
            self.assertTrue(not wrong or not landed, f"{count // PAGE} pages of {prompt}: {wrong}")
            lost += landed is False
            loaded += count // PAGE
            if count < len(tokens):
                engine.store(tokens)
            moved += len(tokens) // PAGE
        self.assertGreater(loaded, 20)
        print(f"sglang's linker, seed 11: {moved} pages, {loaded} loaded, {lost} loads failed, none wrong", flush=True)

    def test_random_faults_raise_nothing_into_sglang(self) -> None:
        files = self.enterContext(secrets())
        server = Server("32MiB", "--set", f"transport.secret_file={files[0]}")
        self.addCleanup(server.close)
        engines = []
        for mapped, secret in ((True, files[0]), (False, files[0]), (True, files[1])):
            with contextlib.nullcontext() if mapped else mock.patch("kvcache.client.Client._map", lambda *_: None):
                engines.append(self.unified(pools.device_mha(), server, timeout=0.5, secret_file=secret))
        stranger = engines[2]
        faults = Faults(server, seed=12)
        counts = {"loaded": 0, "failed": 0, "wrong": 0}

        def work(kind: str) -> None:
            if kind == "key":
                bad = PoolTransfer(PoolName.KV, keys=["k" * 5000, "good"], device_indices=torch.arange(PAGE, 3 * PAGE))
                self.assertEqual([], engines[0].linker.lookup("bad", [bad]))
                self.assertTrue(engines[0].linker.offload([bad]))
                until(engines[0].linker.num_completed_offloads, "the offload")
                self.assertFalse(engines[0].linker.pop_completed_offload())
            engine = stranger if kind == "password" else faults.chosen.choice(engines[:2])
            seed = faults.chosen.randrange(40)
            tokens = list(range(seed * 1000, seed * 1000 + (30 if kind == "full" else 4) * PAGE))
            engine.forget()
            count, landed, wrong = engine.load(tokens)
            self.assertTrue(engine is not stranger or count == 0)
            counts["loaded"] += count // PAGE if landed else 0
            counts["failed"] += landed is False
            counts["wrong"] += bool(landed and wrong)
            engine.forget()
            engine.store(tokens)

        with logged("sglang") as theirs, logged("kvcache") as ours:
            connected = lambda: all(each.linker._client.connected for each in engines[:2])  # noqa: E731
            faults.run(100 * SCALE if SCALE > 1 else 30, work, connected)
        print(f"sglang's linker, {faults.told()}: pages {counts}", flush=True)
        self.assertEqual(0, counts["wrong"])
        self.assertGreater(counts["loaded"], 0)
        others = [each for each in theirs if "External linker load failed" not in each.getMessage() or each.exc_info]
        self.assertEqual([], [each.getMessage() for each in others])
        refused = [each.getMessage() for each in ours if "refused" in each.getMessage()]
        self.assertEqual(1, len(refused), refused)
        self.assertIn("a key of 500", refused[0])


class ClusterTest(unittest.TestCase):
    def setUp(self) -> None:
        self.cluster = Cluster(3, "64MiB")
        self.addCleanup(self.cluster.close)

    def joined(self, client: Any) -> None:
        until(lambda: len(client.view.serving) == 3, "three servers")
        until(lambda: all(each.connected for each in client._route.serving), "sessions with all")

    def test_pages_lie_at_three_servers_one_of_which_dies(self) -> None:
        one, two = (
            Controller(self.cluster.address, self.id(), pools.mha("page_first", allocator)) for allocator in ("shm", "default")
        )
        linked = [pools.Unified(self.cluster.address, self.id(), pools.device_mha()) for _ in range(2)]
        for client in (one.backend._client, two.backend._client, *(each.linker._client for each in linked)):
            self.joined(client)
        for each in (one, two, *linked):
            self.addCleanup(each.close)
        prompts = [list(range(number * 1000, number * 1000 + 4 * PAGE)) for number in range(12)]

        def loaded(engine: Controller) -> List[int]:
            found = []
            for number, tokens in enumerate(prompts):
                found.append(engine.load(tokens, 20) // PAGE)
                for page in range(found[-1]):
                    self.assertTrue(pools.holds(engine.pool, 20 + page, 10 * number + page))
            return found

        began = time.monotonic()
        with logged("sglang") as theirs:
            for number, tokens in enumerate(prompts):
                for page in range(4):
                    pools.fill(one.pool, page, 10 * number + page)
                self.assertEqual(4 * PAGE, one.store(tokens, 0))
                linked[0].forget()
                self.assertTrue(linked[0].store(tokens))
            self.assertEqual([4] * 12, loaded(two))
            self.assertEqual([(4 * PAGE, True, [])] * 12, [linked[1].load(tokens) for tokens in prompts])
            self.assertLess(time.monotonic() - began, 20, "replies are heard as they come")
            self.cluster.nodes[2].kill()
            for engine in (two, one):
                self.assertTrue(0 < sum(loaded(engine)) < 48)
            for tokens in prompts:
                count, landed, wrong = linked[1].load(tokens)
                self.assertTrue(landed is not False and not wrong)
            until(lambda: len(one.backend._client.view.serving) == 2, "two servers")
            until(lambda: one.store(prompts[0], 0) == 4 * PAGE, "room at the others")
        self.assertEqual([], [each.getMessage() for each in theirs if each.exc_info or each.levelno >= logging.ERROR])


class InterfaceTest(unittest.TestCase):
    """The doubles of the unit tests, and the backend, take what SGLang's own classes take."""

    def test_signatures_are_sglangs(self) -> None:
        real = hicache_storage.HiCacheStorage
        for name, method in inspect.getmembers(real, inspect.isfunction):
            theirs = list(inspect.signature(method).parameters)
            for mine in (doubles.HiCacheStorage, KvCacheHiCache):
                if name == "__init__":
                    continue
                self.assertEqual(theirs, list(inspect.signature(getattr(mine, name)).parameters), f"{mine} {name}")
        self.assertEqual(real.__abstractmethods__, doubles.HiCacheStorage.__abstractmethods__)
        for mine, theirs in (
            (doubles.PoolTransfer, PoolTransfer),
            (doubles.PoolTransferResult, hicache_storage.PoolTransferResult),
        ):
            self.assertEqual(list(theirs.__dataclass_fields__), list(mine.__dataclass_fields__))

    def test_signatures_of_the_linker_are_sglangs(self) -> None:
        self.assertEqual(frozenset(), KvCacheLinker.__abstractmethods__)
        for name in UnifiedCacheLinker.__abstractmethods__:
            theirs, mine = (inspect.signature(getattr(each, name)) for each in (UnifiedCacheLinker, KvCacheLinker))
            self.assertEqual(list(theirs.parameters), list(mine.parameters), name)

    def test_this_version_is_one_of_those_that_were_tried(self) -> None:
        with self.assertNoLogs("kvcache.settings"):
            sglang_compat.check()
        with mock.patch("importlib.metadata.version", return_value="0.6.0"):
            with self.assertLogs("kvcache.settings", "WARNING") as logs:
                sglang_compat.check()
        self.assertIn("sglang 0.5.23 to 0.5.23, and this is 0.6.0", logs.output[0])


if __name__ == "__main__":
    unittest.main()
