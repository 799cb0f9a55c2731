"""Blocks between a server and an engine's pool on a GPU, in two processes.

``KVCACHE_TEST_CUDA`` is the driver's library for both: the stand-in that the tests of gpu-bridge build, or
``libcuda.so.1``.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.request
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, Callable, Dict, List, Optional, Set, Tuple
from unittest import mock

from kvcache import BlockShape, Client, ConnectionLost, KvCacheError, Result
from kvcache.gpu import Driver, GpuSession

from tests import engines
from tests.content import content
from tests.serving import Server, until

engines.use_vllm()

from kvcache.vllm_gpu import Geometry, KvCacheConnector  # noqa: E402
from vllm.distributed.kv_transfer.kv_connector.v1.base import KVConnectorRole  # noqa: E402

_CUDA = os.environ.get("KVCACHE_TEST_CUDA", "")
_LAYERS, _SIDES, _PAGES, _PIECE, _PAGES_PER_BLOCK = 2, 2, 64, 2048, 2
_SIDE = _PAGES * _PIECE
_LAYER = _SIDES * _SIDE
_SHAPE = BlockShape(tokens=16, layers=_LAYERS, heads=2, dim=64, dtype="bf16")


_ALLOCATION = 2 << 20
"""What is no multiple of this, drivers share with what lies beside it."""


class Memory:
    """Memory of the device for a pool, and bytes in it."""

    def __init__(self, driver: Driver, size: int) -> None:
        self._driver = driver
        self.size = size = (size + _ALLOCATION - 1) // _ALLOCATION * _ALLOCATION
        address = ctypes.c_uint64()
        with driver.current():
            driver._call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
            self.stream = ctypes.c_void_p()
            driver._call("cuStreamCreateWithPriority", ctypes.byref(self.stream), 1, 0)
        self.address = address.value

    @property
    def handle(self) -> int:
        return self.stream.value or 0

    def write(self, at: int, data: bytes) -> None:
        """In the order of the stream; waits, as the bytes go away."""
        with self._driver.current():
            self._driver._call(
                "cuMemcpyHtoDAsync_v2",
                ctypes.c_uint64(self.address + at),
                data,
                ctypes.c_size_t(len(data)),
                self.stream,
            )
        self.finish()

    def read(self, at: int, size: int) -> bytes:
        into = ctypes.create_string_buffer(size)
        with self._driver.current():
            self._driver._call(
                "cuMemcpyDtoHAsync_v2", into, ctypes.c_uint64(self.address + at), ctypes.c_size_t(size), self.stream
            )
        self.finish()
        return into.raw

    def finish(self) -> None:
        with self._driver.current():
            until(lambda: self._driver._cuda.cuStreamQuery(self.stream) == 0, "the stream to end")


class Engine:
    """A pool of two layers, and its session with a server."""

    def __init__(self, server: Server) -> None:
        self.client = Client(server.address)
        self.blocks = self.client.blocks("gpu model", _SHAPE, layout="test")
        self.session = GpuSession.connect(self.client, library=_CUDA)
        self.memory = Memory(self.session.driver, _LAYERS * _LAYER)
        layers = [(self.memory.address + layer * _LAYER, _LAYER) for layer in range(_LAYERS)]
        self.pool = self.session.pool(
            self.blocks, layers, sides=_SIDES, pages=_PAGES, piece_bytes=_PIECE, pages_per_block=_PAGES_PER_BLOCK
        )

    def fill(self, pages: List[int], seed: int) -> bytes:
        """Writes a block of content into two pages; returns it as the server has it."""
        block = content(b"%d" % seed, _SHAPE.block_bytes)
        at = 0
        for layer in range(_LAYERS):
            for side in range(_SIDES):
                for page in pages:
                    self.memory.write(layer * _LAYER + side * _SIDE + page * _PIECE, block[at : at + _PIECE])
                    at += _PIECE
        return block

    def block_of(self, pages: List[int]) -> bytes:
        return b"".join(
            self.memory.read(layer * _LAYER + side * _SIDE + page * _PIECE, _PIECE)
            for layer in range(_LAYERS)
            for side in range(_SIDES)
            for page in pages
        )

    def close(self) -> None:
        self.session.close()
        self.client.close()


def tokens(seed: int, blocks: int) -> List[int]:
    return [(seed * 7919 + each * 31) & 0x7FFFFFFF for each in range(blocks * _SHAPE.tokens)]


class ArgumentsTest(unittest.TestCase):
    def test_arguments_that_cannot_be_are_named_before_the_server_is_asked(self) -> None:
        client = Client("127.0.0.1:1", lazy=True)
        self.addCleanup(client.close)
        for arguments, words in (
            ((client, -1), "device = -1; allowed: 0 to"),
            ((client, "0"), "device is str; allowed: an int of 0 or more"),
            ((client, None), "device is NoneType; allowed: an int"),
            (("127.0.0.1:7420",), "client is str; allowed: a Client"),
        ):
            with self.subTest(words), self.assertRaisesRegex((ValueError, TypeError), words):
                GpuSession.connect(*arguments)


@unittest.skipUnless(_CUDA, "KVCACHE_TEST_CUDA names no driver's library")
class GpuTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.server = Server("64MiB", "--gpu", "0:160MiB", "--set", "admission=always")
        cls.engine = Engine(cls.server)

    @classmethod
    def tearDownClass(cls) -> None:
        cls.engine.close()
        cls.server.close()

    def test_blocks_are_found_by_tokens_on_both_ways(self) -> None:
        engine = self.engine
        chain = engine.pool.chain(tokens(1, 2))
        self.assertEqual((chain.blocks, chain.present), (2, 0))
        blocks = [engine.fill([3, 17], 10), engine.fill([0, 39], 11)]
        store = chain.store([3, 17, 0, 39], stream=engine.memory.handle)
        self.assertEqual(store.blocks, 2)
        self.assertEqual(engine.blocks.match(engine.blocks.chain(tokens(1, 2))).blocks, 0, "before it is sealed")
        self.assertEqual(store.seal(), 2)
        stored = engine.blocks.chain(tokens(1, 2))
        self.assertEqual(engine.blocks.match(stored).blocks, 2)
        until(lambda: engine.blocks.match(stored) == (2, 0, 0), "both blocks to be on the GPU too")
        self.assertEqual(
            bytes(engine.blocks.get(engine.blocks.chain(tokens(1, 2)))[1]), blocks[1], "over the connection"
        )
        before = engine.block_of([10, 11])
        again = engine.pool.chain(tokens(1, 2) + [5] * 20)
        self.assertEqual((again.blocks, again.present), (3, 2))
        self.assertEqual(again.load([8, 9, 21, 20, 10, 11], stream=engine.memory.handle), 2)
        self.assertEqual([engine.block_of([8, 9]), engine.block_of([21, 20])], blocks)
        self.assertEqual(engine.block_of([10, 11]), before, "pages of a block that is absent")
        for each in (chain, again):
            each.close()

    def test_a_chain_grows_by_what_is_new(self) -> None:
        all_tokens = tokens(2, 3)
        chain = self.engine.pool.chain(all_tokens[:20])
        self.assertEqual(chain.blocks, 1)
        chain.extend(all_tokens[20:40])
        self.assertEqual(chain.blocks, 2)
        block = self.engine.fill([1, 2], 20)
        chain.store([1, 2], stream=self.engine.memory.handle).seal()
        chain.extend(all_tokens[40:])
        self.assertEqual((chain.blocks, chain.present), (3, 1))
        found = self.engine.blocks.get(self.engine.blocks.chain(all_tokens))
        self.assertEqual([bytes(each) for each in found], [block])
        chain.close()

    def test_engines_are_counted(self) -> None:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.server.port}/metrics") as metrics:
            self.assertIn(b"\nkv_engines 1.0\n", metrics.read())

    def test_a_long_chain_is_told_in_parts(self) -> None:
        chain = self.engine.pool.chain(tokens(3, 4000))
        self.assertEqual(chain.blocks, 4000)
        chain.close()

    def test_what_memory_evicts_comes_back_from_the_gpu(self) -> None:
        engine = self.engine
        for seed in range(100, 100 + 6000):
            block = content(b"%d" % seed, _SHAPE.block_bytes)
            engine.blocks.put(engine.blocks.chain(tokens(seed, 1)), 0, block)
        found = 0
        for seed in range(100, 100 + 6000, 37):
            chain = engine.pool.chain(tokens(seed, 1))
            if chain.load([4, 5], stream=engine.memory.handle, wait=5.0):
                found += 1
                self.assertEqual(engine.block_of([4, 5]), content(b"%d" % seed, _SHAPE.block_bytes))
            chain.close()
        self.assertGreater(found, 0)
        with urllib.request.urlopen(f"http://127.0.0.1:{self.server.port}/v1/stats") as stats:
            loaded = [each["blocksFromDevice"] for each in json.load(stats)["namespaces"] if each["blocksFromDevice"]]
        self.assertTrue(loaded, "from the GPU")

    def test_wrong_requests_are_refused_and_the_session_goes_on(self) -> None:
        engine = self.engine
        chain = engine.pool.chain(tokens(4, 1))
        for pages, reason in (([8, _PAGES], str(_PAGES)), ([8, 8], "comes twice"), ([-1, 3], "-1")):
            with self.assertRaisesRegex(KvCacheError, reason):
                chain.load(pages, stream=engine.memory.handle)
        with self.assertRaisesRegex(ValueError, "2 for each block"):
            chain.load([1])
        with self.assertRaisesRegex(ValueError, "0 to 10 seconds"):
            chain.load([1, 2], wait=11)
        with self.assertRaisesRegex(KvCacheError, "no blocks are served under"):
            engine.session.pool(
                bytes(32), [(engine.memory.address, _LAYER)], sides=2, pages=1, piece_bytes=1, pages_per_block=1
            )
        with self.assertRaisesRegex(KvCacheError, "blocks of"):
            layers = [(engine.memory.address, _LAYER)]
            engine.session.pool(engine.blocks, layers, sides=2, pages=2, piece_bytes=_PIECE, pages_per_block=2)
        self.assertEqual(chain.load([1, 2], stream=engine.memory.handle), 0)
        chain.close()

    def test_an_engine_that_is_killed_leaves_nothing_unsealed(self) -> None:
        script = (
            "import sys, time; from tests.test_gpu import *\n"
            "class There:\n    address = sys.argv[1]\n"
            "engine = Engine(There)\n"
            "engine.fill([1, 2], 50); engine.fill([3, 4], 51)\n"
            "engine.pool.chain(tokens(50, 1)).store([1, 2], stream=engine.memory.handle).seal()\n"
            "engine.pool.chain(tokens(51, 1)).store([3, 4], stream=engine.memory.handle)\n"
            "print('stored', flush=True); time.sleep(60)\n"
        )
        there = subprocess.Popen(
            [sys.executable, "-c", script, self.server.address],
            cwd=pathlib.Path(__file__).parents[1],
            stdout=subprocess.PIPE,
        )
        try:
            assert there.stdout is not None
            self.assertEqual(there.stdout.readline(), b"stored\n")
        finally:
            there.kill()
            there.wait()
            there.stdout.close()
        blocks = self.engine.blocks
        self.assertEqual(bytes(blocks.get(blocks.chain(tokens(50, 1)))[0]), content(b"50", _SHAPE.block_bytes))
        chain, block = blocks.chain(tokens(51, 1)), content(b"51", _SHAPE.block_bytes)
        until(lambda: blocks.put(chain, 0, block) == Result.COPIED, "the block to be free")
        self.assertEqual(bytes(blocks.get(chain)[0]), block)

    def test_more_chains_than_allowed(self) -> None:
        chains = [self.engine.pool.chain([1]) for _ in range(len(self.engine.session._chains))]
        with self.assertRaisesRegex(KvCacheError, "1024 chains are open"):
            self.engine.pool.chain([1])
        for chain in chains:
            chain.close()


@unittest.skipUnless(_CUDA, "KVCACHE_TEST_CUDA names no driver's library")
class RoomTest(unittest.TestCase):
    """The operator and an engine give the tier another size, while another engine stores and loads."""

    def command(self, *words: str) -> Tuple[int, str]:
        server = self.server.command()
        done = subprocess.run(
            [*server[: server.index("serve")], *words, "--port", str(self.server.port)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return done.returncode, " ".join(done.stdout.split())

    def setUp(self) -> None:
        self.server = Server("64MiB", "--gpu", "0:24MiB:32MiB", "--set", "admission=always")
        self.addCleanup(self.server.close)

    def test_a_tier_has_another_size_while_engines_use_it(self) -> None:
        working, greedy = Engine(self.server), Engine(self.server)
        self.addCleanup(greedy.close)
        ended = threading.Event()
        result: List[Any] = []

        def work() -> None:
            seed = 0
            try:
                while not ended.is_set() or seed < 50:
                    seed += 1
                    chain = working.pool.chain(tokens(seed, 2))
                    blocks = [working.fill([1, 2], seed), working.fill([3, 4], -seed)]
                    chain.store([1, 2, 3, 4], stream=working.memory.handle).seal()
                    self.assertEqual(chain.load([8, 9, 21, 20], stream=working.memory.handle, wait=5.0), 2)
                    self.assertEqual([working.block_of([8, 9]), working.block_of([21, 20])], blocks)
                    chain.close()
                result.append(seed)
            except BaseException as failed:
                result.append(failed)

        worker = threading.Thread(target=work)
        worker.start()
        try:
            self.assertEqual(self.command("gpu"), (0, "0 GPU 0 is serving, with 24 MiB of up to 32 MiB"))
            self.assertEqual(self.command("gpu", "resize", "0", "12MiB"), (0, "GPU 0 has 12 MiB now, and had 24 MiB"))
            with self.assertRaisesRegex(KvCacheError, "it takes 12582912 to 33554432"):
                greedy.session.take_room(1)
            self.assertEqual(self.command("gpu", "resize", "0", "32MiB")[0], 0)
            self.assertEqual(self.server.meter("kv_gpu_capacity_bytes", 'gpu="0"'), 32 << 20)
            self.assertEqual(greedy.session.take_room(3 << 20), 4 << 20)
            self.assertEqual(greedy.session.return_room(2 << 20), 2 << 20)
            self.assertEqual(self.server.meter("kv_gpu_capacity_bytes"), 30 << 20)
            with self.assertRaisesRegex(KvCacheError, "down to -2097152 for what was given before"):
                greedy.session.return_room(3 << 20)
            with self.assertRaisesRegex(ValueError, "allowed: an int of 1 and up"):
                greedy.session.take_room(0)
            greedy.session.close()
            until(lambda: self.server.meter("kv_gpu_capacity_bytes") == 32 << 20, "the tier to have its room again")
            status, output = self.command("gpu", "resize", "0", "64MiB")
            self.assertEqual(status, 1)
            self.assertIn("it takes 12582912 to 33554432", output)
            self.assertEqual(
                self.command("gpu", "resize", "1", "12MiB"),
                (1, "kvcache gpu resize: the server keeps no blocks on GPU 1; kvcache gpu lists those where it does"),
            )
        finally:
            ended.set()
            worker.join()
            working.close()
        self.assertIsInstance(result[0], int, result)
        self.assertRegex(self.server.log(), r"GPU 0 has 12\.0 MiB .* now, and had 24\.0 MiB .*, for an operator")
        self.assertRegex(self.server.log(), "GPU 0 has 29360128 bytes now, and had 33554432, for an engine")

    def test_sizes_that_a_tier_does_not_take_are_named_at_the_start(self) -> None:
        with self.assertRaisesRegex(AssertionError, "gpu.0: a device tier of 1048576 bytes that grows to .* and up"):
            Server("64MiB", "--gpu", "0:1MiB:96MiB")


@unittest.skipUnless(_CUDA, "KVCACHE_TEST_CUDA names no driver's library")
class LayersFromDiskTest(unittest.TestCase):
    """Blocks of 512 KiB in eight layers, so that the disk reads them in part."""

    layers, blocks, page = 8, 12, 64 << 10

    def test_layers_come_from_a_disk_in_their_order(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        server = Server("64MiB", "--gpu", "0", "--disk", f"{folder.name}:512MiB", "--set", "admission=always")
        self.addCleanup(server.close)
        client = Client(server.address)
        self.addCleanup(client.close)
        shape = BlockShape(tokens=16, layers=self.layers, heads=8, dim=128, dtype="bf16")
        self.assertEqual(shape.block_bytes, self.layers * self.page)
        blocks = client.blocks("layers from disk", shape, layout="test")
        session = GpuSession.connect(client, library=_CUDA)
        self.addCleanup(session.close)
        size = self.blocks * self.page
        memory = Memory(session.driver, self.layers * size)
        pool = session.pool(
            blocks,
            [(memory.address + layer * size, size) for layer in range(self.layers)],
            sides=1,
            pages=self.blocks,
            piece_bytes=self.page,
            pages_per_block=1,
        )
        prompts: List[Any] = []

        def puts_until_one_is_cold() -> bool:
            seed = len(prompts)
            tokens = [seed * 1000 + each for each in range(16 * self.blocks)]
            prompts.append(tokens)
            chain = blocks.chain(tokens)
            for block in range(self.blocks):
                data = content(b"%d/%d" % (seed, block), shape.block_bytes)
                until(lambda: blocks.put(chain, block, data) in (Result.COPIED, Result.PRESENT), "room")
            match = blocks.match(blocks.chain(prompts[0]))
            return match.disk == self.blocks

        until(puts_until_one_is_cold, "a chain on the disk")
        chain = pool.chain(prompts[0])
        load = chain.load_layers(list(range(self.blocks)), stream=memory.handle, wait=5.0)
        assert load is not None
        for layer in range(self.layers):
            load.order(layer, memory.handle)
            for block in range(self.blocks):
                expected = content(b"0/%d" % block, shape.block_bytes)[layer * self.page : (layer + 1) * self.page]
                self.assertEqual(memory.read(layer * size + block * self.page, self.page), expected, f"{layer}/{block}")
        self.assertEqual(load.finish(memory.handle), self.blocks)
        with self.assertRaisesRegex(ValueError, "layer = 8; allowed: 0 to 7"):
            load.order(8, memory.handle)
        absent = pool.chain([9_999_999] * 16)
        self.assertIsNone(absent.load_layers([0], stream=memory.handle))


@unittest.skipUnless(_CUDA, "KVCACHE_TEST_CUDA names no driver's library")
class GpuServerTest(unittest.TestCase):
    def test_a_server_that_is_killed_ends_the_session_and_its_next_one_serves(self) -> None:
        server = Server("64MiB", "--gpu", "0")
        engine = Engine(server)
        try:
            chain = engine.pool.chain(tokens(1, 1))
            engine.fill([1, 2], 60)
            server.signal(signal.SIGKILL)
            server.process.wait()
            with self.assertRaises(ConnectionLost):
                chain.store([1, 2], stream=engine.memory.handle)
            server.start()
            engine.session.close()
            until(lambda: engine.client.connected, "the client to connect")
            another = Engine(server)
            block = another.fill([1, 2], 61)
            chain = another.pool.chain(tokens(1, 1))
            self.assertEqual(chain.store([1, 2], stream=another.memory.handle).seal(), 1)
            self.assertEqual(bytes(another.blocks.get(another.blocks.chain(tokens(1, 1)))[0]), block)
            another.close()
        finally:
            engine.close()
            server.close()
        self.assertFalse(list(pathlib.Path("/dev/shm").glob(f"kvcache-*-{server.transport}/gpu-*")))

    def test_a_server_without_a_gpu_says_how_to_start_it(self) -> None:
        server = Server("64MiB")
        try:
            with Client(server.address) as client, self.assertRaisesRegex(KvCacheError, "--gpu DEVICE"):
                GpuSession.connect(client, library=_CUDA)
        finally:
            server.close()

    def test_a_device_that_is_not_there_is_refused(self) -> None:
        with self.assertRaisesRegex(AssertionError, "gpu.0: .*NO_DEVICE"):
            Server("64MiB", "--gpu", "9:1GiB")
        with self.assertRaisesRegex(AssertionError, r"gpu.0: GPU 0 .* GiB of memory, not 1024"):
            Server("64MiB", "--gpu", "0:1TiB")


class Tensor:
    """What a connector reads of PyTorch's: a layer of the KV cache in memory of the device."""

    dtype = "bfloat16"

    def __init__(self, address: int, shape: List[int], strides: Optional[List[int]] = None) -> None:
        self._address = address
        self.shape = shape
        dense = [1] * len(shape)
        for axis in range(len(shape) - 2, -1, -1):
            dense[axis] = dense[axis + 1] * shape[axis + 1]
        self._strides = strides or dense
        self.device = SimpleNamespace(index=0)

    def data_ptr(self) -> int:
        return self._address

    def stride(self) -> List[int]:
        return self._strides

    def element_size(self) -> int:
        return 2


class Request:
    """A request as vLLM's scheduler has it."""

    def __init__(self, name: str, prompt: List[int], **more: Any) -> None:
        self.request_id = name
        self.all_token_ids = prompt
        self.lora_request = more.get("lora_request")
        self.mm_features = more.get("mm_features", [])
        self.cache_salt = None


class Vllm:
    """An engine of one worker: two layers, 64 blocks of 16 tokens, keys and values apart or together."""

    def __init__(self, server: Server, name: str, together: bool = False, by_layers: bool = False) -> None:
        config = SimpleNamespace(
            model_config=SimpleNamespace(model="vllm model", revision=None, dtype="torch.bfloat16"),
            cache_config=SimpleNamespace(cache_dtype="auto"),
            parallel_config=SimpleNamespace(world_size=1, rank=0, tensor_parallel_size=1, pipeline_parallel_size=1),
            kv_transfer_config=SimpleNamespace(
                engine_id=name,
                kv_connector_extra_config={
                    "address": server.address,
                    "cuda_library": _CUDA,
                    "timeout": 5,
                    "layers": by_layers,
                },
            ),
        )
        spec = SimpleNamespace(block_size=16)
        cache = SimpleNamespace(num_blocks=_PAGES, kv_cache_groups=[SimpleNamespace(kv_cache_spec=spec)])
        self.driver = Driver(0, _CUDA)
        self.memory = Memory(self.driver, _LAYERS * _LAYER)
        self.together = together
        shape = [_PAGES, 16, 4, 32] if together else [2, _PAGES, 16, 2, 32]
        self.scheduler = KvCacheConnector(config, KVConnectorRole.SCHEDULER, cache)
        self.worker = KvCacheConnector(config, KVConnectorRole.WORKER, cache)
        layers = {f"layer.{each}": Tensor(self.memory.address + each * _LAYER, shape) for each in range(_LAYERS)}
        with mock.patch("kvcache.vllm_gpu._current_stream", lambda: self.memory.handle):
            self.worker.register_kv_caches(layers)
        self.failed: Set[int] = set()

    def _pieces(self, block: int) -> List[int]:
        if self.together:
            return [layer * _LAYER + block * 2 * _PIECE for layer in range(_LAYERS)]
        return [layer * _LAYER + side * _SIDE + block * _PIECE for layer in range(_LAYERS) for side in range(2)]

    def write(self, block: int, data: bytes) -> None:
        size = len(data) // len(self._pieces(block))
        for number, at in enumerate(self._pieces(block)):
            self.memory.write(at, data[number * size : (number + 1) * size])

    def read(self, block: int) -> bytes:
        size = _PIECE * (2 if self.together else 1)
        return b"".join(self.memory.read(at, size) for at in self._pieces(block))

    def step(
        self,
        new: Sequence[Tuple[Request, int, List[int], int]] = (),
        cached: Sequence[Tuple[Request, int, List[int], int]] = (),
        finished: Sequence[str] = (),
        resumed: Sequence[str] = (),
        drafts: Optional[Dict[str, List[int]]] = None,
        compute: Callable[[], None] = lambda: None,
    ) -> None:
        """A step of the engine; requests with computed tokens, (new) blocks and scheduled tokens."""
        output = SimpleNamespace(
            finished_req_ids=set(finished),
            scheduled_new_reqs=[
                SimpleNamespace(req_id=each.request_id, num_computed_tokens=computed, block_ids=(blocks,))
                for each, computed, blocks, _ in new
            ],
            scheduled_cached_reqs=SimpleNamespace(
                req_ids=[each.request_id for each, _, _, _ in cached],
                resumed_req_ids=set(resumed),
                num_computed_tokens=[computed for _, computed, _, _ in cached],
                new_block_ids=[(blocks,) if blocks else None for _, _, blocks, _ in cached],
            ),
            num_scheduled_tokens={each.request_id: count for each, _, _, count in [*new, *cached]},
            scheduled_spec_decode_tokens=drafts or {},
        )
        work = pickle.loads(pickle.dumps(self.scheduler.build_connector_meta(output)))
        self.worker.bind_connector_metadata(work)
        self.worker.start_load_kv(None)
        for layer in range(_LAYERS):
            self.worker.wait_for_layer_load(f"layer.{layer}")
        compute()
        self.worker.wait_for_save()
        self.failed = self.worker.get_block_ids_with_load_errors()
        self.worker.clear_connector_metadata()
        self.scheduler.update_connector_output(SimpleNamespace(invalid_block_ids=self.failed))

    def match(self, request: Request, computed: int = 0) -> int:
        count, beside = self.scheduler.get_num_new_matched_tokens(request, computed)
        assert not beside
        return count

    def close(self) -> None:
        self.worker.shutdown()
        self.scheduler.shutdown()


def kv(prompt: Sequence[int], block: int) -> bytes:
    """What a model would compute: it follows from all tokens up to the block's end."""
    return content(repr(list(prompt[: 16 * (block + 1)])).encode(), _LAYERS * _SIDES * _PIECE)


@unittest.skipUnless(_CUDA, "KVCACHE_TEST_CUDA names no driver's library")
class VllmGpuTest(unittest.TestCase):
    by_layers = False

    @classmethod
    def setUpClass(cls) -> None:
        cls.server = Server("64MiB", "--gpu", "0")

    @classmethod
    def tearDownClass(cls) -> None:
        cls.server.close()

    def engine(self, name: str, together: bool = False) -> Vllm:
        engine = Vllm(self.server, f"{self.id()} {name}", together, self.by_layers)
        self.addCleanup(engine.close)
        return engine

    def prefill(self, engine: Vllm, request: Request, blocks: List[int]) -> int:
        """Runs a new request's prompt: loads what is there, computes the rest. Returns the loaded tokens."""
        external = engine.match(request)
        engine.scheduler.update_state_after_alloc(request, None, external)
        prompt = request.all_token_ids

        def compute() -> None:
            for block in range(external // 16, len(prompt) // 16):
                engine.write(blocks[block], kv(prompt, block))

        engine.step(new=[(request, external, blocks, len(prompt) - external)], compute=compute)
        return external

    def assert_blocks(self, engine: Vllm, request: Request, blocks: List[int], count: int) -> None:
        for block in range(count):
            self.assertEqual(engine.read(blocks[block]), kv(request.all_token_ids, block), f"block {block}")

    def test_an_engine_loads_what_another_has_stored(self) -> None:
        for together in (False, True):
            first, second = self.engine(f"first {together}", together), self.engine(f"second {together}", together)
            prompt = [5 + together] + list(range(100))
            request = Request("one", prompt)
            self.assertEqual(self.prefill(first, request, [7, 3, 40, 2, 9, 11, 30]), 0)
            again = Request("two", prompt)
            until(lambda: second.match(again) == 96, "the blocks to be findable")
            pages = [20, 22, 21, 50, 63, 0, 1]
            self.assertEqual(self.prefill(second, again, pages), 96)
            self.assertEqual(second.failed, set())
            self.assert_blocks(second, again, pages, 6)
            self.assertEqual(second.match(Request("three", prompt[:96])), 80, "one token has to be computed")
            self.assertEqual(second.match(Request("four", prompt), 32), 64, "beyond what vLLM has itself")
            self.assertEqual(second.match(Request("five", prompt), 33), 0)

    def test_engines_of_other_layouts_share_nothing(self) -> None:
        first, second = self.engine("first"), self.engine("second", together=True)
        request = Request("one", [77] * 40)
        self.prefill(first, request, [1, 2, 3])
        until(lambda: first.match(Request("two", [77] * 40)) == 32, "the blocks to be findable")
        self.assertEqual(second.match(Request("three", [77] * 40)), 0)

    def test_what_is_generated_is_stored_when_a_block_is_full(self) -> None:
        engine = self.engine("one")
        request = Request("one", [9] * 20)
        self.prefill(engine, request, [4, 5])
        for step in range(12):
            request.all_token_ids.append(100 + step)
            if len(request.all_token_ids) == 32:
                engine.write(5, kv(request.all_token_ids, 1))
            engine.step(cached=[(request, 20 + step, [], 1)])
        self.assertEqual(len(request.all_token_ids), 32)
        follow = Request("two", [*request.all_token_ids, 1, 2, 3])
        until(lambda: engine.match(follow) == 32, "the second block to be findable")
        engine.step(finished=["one"])
        pages = [33, 34, 35]
        self.assertEqual(self.prefill(engine, follow, pages), 32)
        self.assert_blocks(engine, follow, pages, 2)

    def test_drafts_that_may_be_rejected_are_not_stored(self) -> None:
        engine = self.engine("one")
        request = Request("one", [8] * 14)
        self.prefill(engine, request, [4, 5])
        request.all_token_ids.append(1)
        engine.step(cached=[(request, 14, [], 4)], drafts={"one": [2, 3, 4]})
        time.sleep(0.2)
        self.assertEqual(engine.match(Request("two", [*[8] * 14, 1, 2, 3])), 0)

    def test_a_preempted_request_continues_in_other_blocks(self) -> None:
        engine = self.engine("one")
        request = Request("one", [6] * 40)
        self.prefill(engine, request, [4, 5, 6])
        until(lambda: engine.match(request) == 32, "the blocks to be findable")
        engine.scheduler.update_state_after_alloc(request, None, 32)
        engine.step(cached=[(request, 32, [40, 41, 42], 8)], resumed=["one"])
        self.assert_blocks(engine, request, [40, 41, 42], 2)

    def test_blocks_that_vanish_are_reported_and_computed(self) -> None:
        engine = self.engine("one")
        prompt = [3] * 100
        self.prefill(engine, Request("one", prompt), [1, 2, 3, 4, 5, 6, 7])
        again = Request("two", prompt)
        until(lambda: engine.match(again) == 96, "the blocks to be findable")
        blocks = engine.scheduler._scheduling()._ranks()[0]
        self.assertEqual(blocks.drop(blocks.chain(prompt), 4), 2)
        engine.scheduler.update_state_after_alloc(again, None, 96)
        pages = [11, 12, 13, 14, 15, 16, 17]
        engine.step(new=[(again, 96, pages, 4)])
        self.assertEqual(engine.failed, {15, 16})
        self.assert_blocks(engine, again, pages, 4)

    def test_requests_that_tokens_do_not_name_are_left_alone(self) -> None:
        engine = self.engine("one")
        adapted = Request("one", [13] * 40, lora_request=object())
        self.assertEqual(self.prefill(engine, adapted, [1, 2, 3]), 0)
        seen = Request("two", [13] * 40, mm_features=[object()])
        self.assertEqual(self.prefill(engine, seen, [4, 5, 6]), 0)
        time.sleep(0.2)
        self.assertEqual(engine.match(Request("three", [13] * 40)), 0)

    def test_more_requests_than_chains(self) -> None:
        engine = self.engine("one")
        with mock.patch("kvcache.vllm_connector._MOST_CHAINS", 2):
            requests = [Request(f"r{each}", [each] * 17 + [1]) for each in range(5)]
            for each in requests:
                self.prefill(engine, each, [5, 6])
        until(lambda: all(engine.match(Request("again", each.all_token_ids)) == 16 for each in requests), "all of them")

    def test_a_killed_server_costs_hits_only(self) -> None:
        server = Server("64MiB", "--gpu", "0")
        engine = Vllm(server, "killed", by_layers=self.by_layers)
        try:
            prompt = [4] * 40
            self.prefill(engine, Request("one", prompt), [1, 2, 3])
            again = Request("two", prompt)
            until(lambda: engine.match(again) == 32, "the blocks to be findable")
            engine.scheduler.update_state_after_alloc(again, None, 32)
            server.kill()
            with self.assertLogs("kvcache", "WARNING"):
                engine.step(new=[(again, 32, [11, 12, 13], 8)])
            self.assertEqual(engine.failed, {11, 12})
            until(lambda: engine.match(Request("three", prompt)) == 0, "the loss to be seen")
            server.start()
            with mock.patch("kvcache.vllm_gpu._RETRY_SECONDS", 0.0):
                until(lambda: self._stores_again(engine, prompt), "the engine to store again")
        finally:
            engine.close()
            server.close()

    def _stores_again(self, engine: Vllm, prompt: List[int]) -> bool:
        request = Request(f"r{time.monotonic()}", prompt)
        self.prefill(engine, request, [1, 2, 3])
        time.sleep(0.1)
        return engine.match(Request("later", prompt)) == 32

    def test_an_engine_starts_without_its_server(self) -> None:
        server = Server("64MiB", "--gpu", "0")
        server.kill()
        with self.assertLogs("kvcache", "WARNING"):
            engine = Vllm(server, "early")
        try:
            self.assertEqual(self.prefill(engine, Request("one", [1] * 40), [1, 2, 3]), 0)
        finally:
            engine.close()
            server.close()


class VllmGpuLayersTest(VllmGpuTest):
    """The same, where a step begins with its first layers."""

    by_layers = True

    def test_graphs_leave_room_for_waits(self) -> None:
        self.assertTrue(KvCacheConnector.requires_piecewise_for_cudagraph({"layers": True}))
        self.assertFalse(KvCacheConnector.requires_piecewise_for_cudagraph({}))
        with self.assertRaisesRegex(ValueError, "layers = 'yes'; allowed: true and false"):
            KvCacheConnector.requires_piecewise_for_cudagraph({"layers": "yes"})


class GeometryTest(unittest.TestCase):
    def test_axes_are_found(self) -> None:
        apart = Geometry.of(Tensor(0, [2, 64, 16, 2, 32]), 64)
        self.assertEqual((apart.sides, apart.pages, apart.piece_bytes, apart.side_stride), (2, 64, 2048, 64 * 2048))
        beside = Geometry.of(Tensor(0, [64, 2, 16, 2, 32]), 64)
        self.assertEqual((beside.sides, beside.pages, beside.piece_bytes, beside.page_stride), (1, 64, 4096, 4096))
        small = Geometry.of(Tensor(0, [256, 16, 2, 32]), 64)
        self.assertEqual((small.pages, small.pages_per_block), (256, 4))
        turned = Geometry.of(Tensor(0, [64, 16, 2, 32], [1024, 32, 512, 1]), 64)
        self.assertEqual(turned.piece_bytes, 2048)
        self.assertNotEqual(turned.axes, Geometry.of(Tensor(0, [64, 16, 2, 32]), 64).axes)
        across = Geometry.of(Tensor(0, [64, 16, 2, 32], [2048, 64, 32, 1]), 64)
        self.assertEqual((across.page_stride, across.piece_bytes), (4096, 2048))

    @unittest.skipUnless(importlib.util.find_spec("torch"), "torch is not installed")
    def test_tensors_of_pytorch_are_taken(self) -> None:
        import torch

        apart = torch.zeros([2, 64, 16, 2, 32], dtype=torch.bfloat16)
        self.assertEqual(Geometry.of(apart, 64)[:6], (2, 64, 1, 2048, 2048, 64 * 2048))
        heads_first = torch.zeros([64, 2, 16, 64], dtype=torch.bfloat16).permute(0, 2, 1, 3)
        self.assertEqual(Geometry.of(heads_first, 64)[:6], (1, 64, 1, 4096, 4096, 0))
        layers = torch.zeros([64, 2, 16, 2, 32], dtype=torch.bfloat16).unbind(1)
        self.assertEqual(Geometry.of(layers[1], 64)[:6], (1, 64, 1, 2048, 4096, 0))
        with self.assertRaisesRegex(ValueError, "blocks without gaps"):
            Geometry.of(apart[..., :16], 64)

    def test_what_has_gaps_or_other_axes_is_refused(self) -> None:
        for tensor in (
            Tensor(0, [63, 16, 2, 32]),
            Tensor(0, [3, 64, 16, 2, 32]),
            Tensor(0, [64, 16, 2, 32], [1024, 64, 32, 2]),
        ):
            with self.assertRaisesRegex(ValueError, "allowed: "):
                Geometry.of(tensor, 64)


if __name__ == "__main__":
    unittest.main()
