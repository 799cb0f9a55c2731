"""vLLM's own scheduler and connector classes, step by step, with a model that is played. For tests.

What the model would compute follows from the tokens, so that every byte of the KV cache is known. As with a real model,
what is computed upon wrong blocks is wrong too.
"""

from __future__ import annotations

import hashlib
import itertools
import pathlib
import pickle
import struct
from typing import Any, Callable, Dict, List, Optional, Sequence, Set
from unittest import mock

import torch
from vllm import SamplingParams
from vllm.config import KVTransferConfig
from vllm.distributed.kv_transfer.kv_connector.factory import KVConnectorFactory
from vllm.distributed.kv_transfer.kv_connector.v1.base import KVConnectorRole
from vllm.engine.arg_utils import EngineArgs
from vllm.utils.hashing import sha256
from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec
from vllm.v1.outputs import KVConnectorOutput, ModelRunnerOutput
from vllm.v1.request import Request

TOKENS = 16
"""Of a block."""

LAYERS = 2
_HEADS, _DIM = 4, 128
_MOST_STEPS = 400


def allocate(blocks: int, page: int) -> torch.Tensor:
    """A layer's KV cache in memory of this process."""
    return torch.zeros(blocks, page, dtype=torch.int8)


def expected(tokens: Sequence[int], size: int) -> bytes:
    """What the model computes for the block that ends with these tokens, of all of them."""
    seed = hashlib.sha256(struct.pack(f"<{len(tokens)}q", *tokens)).digest()
    return hashlib.shake_128(seed).digest(size)


class SteppedEngine:
    """An engine of one worker, whose connectors vLLM's factory has made by their names."""

    def __init__(
        self,
        model: pathlib.Path,
        transfer: Dict[str, Any],
        blocks: int = 48,
        memory: Callable[[int, int], torch.Tensor] = allocate,
        finish: Callable[[], None] = lambda: None,
    ) -> None:
        """
        :param memory: makes a layer's KV cache
        :param finish: waits for copies that the connector has queued
        """
        config = EngineArgs(
            model=str(model),
            load_format="dummy",
            skip_tokenizer_init=True,
            enforce_eager=True,
            max_model_len=1024,
            max_num_seqs=8,
            block_size=TOKENS,
            kv_transfer_config=KVTransferConfig(**transfer),
        ).create_engine_config()
        spec = FullAttentionSpec(block_size=TOKENS, num_kv_heads=_HEADS, head_size=_DIM, dtype=torch.bfloat16)
        names = [f"model.layers.{layer}.attn" for layer in range(LAYERS)]
        cache = KVCacheConfig(num_blocks=blocks, kv_cache_tensors=[], kv_cache_groups=[KVCacheGroupSpec(names, spec)])
        config.cache_config.num_gpu_blocks = blocks
        init_none_hash(sha256)
        self._hasher = get_request_block_hasher(TOKENS, sha256)
        grammars = mock.Mock(**{"should_advance.return_value": False})
        self.scheduler = Scheduler(config, cache, grammars, TOKENS, log_stats=True)
        self.worker = KVConnectorFactory.create_connector(config, KVConnectorRole.WORKER, cache)
        self.page = spec.page_size_bytes
        self._layers = [memory(blocks, self.page) for _ in names]
        self._finish = finish
        self.worker.register_kv_caches(dict(zip(names, self._layers)))
        self._numbers = itertools.count()
        self._requests: Dict[str, Request] = {}
        self.wrong = 0
        """Blocks with other bytes of which the connector did not say that they were not loaded."""
        self._upon_wrong: Set[int] = set()
        """Pages that were computed upon wrong ones in this step, in which other requests may share them."""
        self.hits = 0
        """Tokens that vLLM's scheduler counts as loaded."""
        self.counts: Dict[str, float] = {}
        """What the connectors told vLLM's metrics."""

    @property
    def connector(self) -> Any:
        """The scheduler's."""
        return self.scheduler.connector

    def connected(self) -> bool:
        return bool(self.connector._client.connected and self.worker._client.connected)

    def read(self, page: int) -> bytes:
        return b"".join(layer[page].numpy().tobytes() for layer in self._layers)

    def _write(self, page: int, data: bytes) -> None:
        for number, layer in enumerate(self._layers):
            part = bytearray(data[number * self.page : (number + 1) * self.page])
            layer[page].copy_(torch.frombuffer(part, dtype=torch.int8).view(layer[page].shape))

    def run(self, prompts: Sequence[Sequence[int]], tokens: int = 2) -> None:
        """Answers prompts at the same time, with so many tokens each."""
        for prompt in prompts:
            sampling = SamplingParams(temperature=0, max_tokens=tokens, ignore_eos=True)
            request = Request(f"r{next(self._numbers)}", list(prompt), sampling, None, block_hasher=self._hasher)
            self._requests[request.request_id] = request
            self.scheduler.add_request(request)
        for _ in range(_MOST_STEPS):
            if not self.scheduler.has_unfinished_requests():
                self.step()  # tells of what has finished
                return
            self.step()
        raise AssertionError(f"not answered within {_MOST_STEPS} steps: {sorted(self.scheduler.requests)}")

    def step(self) -> None:
        """Schedules, loads, computes, stores and takes the tokens, as vLLM does."""
        output = self.scheduler.schedule()
        self.worker.bind_connector_metadata(pickle.loads(pickle.dumps(output.kv_connector_metadata)))
        self.worker.start_load_kv(None)
        for layer in range(LAYERS):
            self.worker.wait_for_layer_load(f"model.layers.{layer}.attn")
        self._finish()
        mistaken: Set[int] = set()
        self._upon_wrong.clear()
        starts = {new.req_id: new.num_computed_tokens for new in output.scheduled_new_reqs}
        cached = output.scheduled_cached_reqs
        starts.update(zip(cached.req_ids, cached.num_computed_tokens))
        sampled: List[List[int]] = []
        for name, count in output.num_scheduled_tokens.items():
            mistaken |= self._compute(name, starts[name], count)
            request = self._requests[name]
            ended = starts[name] + count >= request.num_tokens
            sampled.append([(request.num_tokens * 31 + request.all_token_ids[-1]) % 30000] if ended else [])
        self.worker.wait_for_save()
        self._finish()
        failed = self.worker.get_block_ids_with_load_errors()
        self.wrong += len(mistaken - failed - self._upon_wrong)
        self._count(self.worker.get_kv_connector_stats())
        self.worker.clear_connector_metadata()
        names = list(output.num_scheduled_tokens)
        result = ModelRunnerOutput(
            req_ids=names,
            req_id_to_index={name: at for at, name in enumerate(names)},
            sampled_token_ids=sampled,
            kv_connector_output=KVConnectorOutput(invalid_block_ids=failed) if failed else None,
        )
        for told in self.scheduler.update_from_output(output, result).values():
            stats = told.scheduler_stats
            if stats is not None and stats.kv_connector_stats:
                self._count(type(self.connector).build_kv_connector_stats(stats.kv_connector_stats))
            if stats is not None and stats.connector_prefix_cache_stats is not None:
                self.hits += stats.connector_prefix_cache_stats.hits
        for name in output.finished_req_ids:
            self._requests.pop(name, None)

    def _count(self, stats: Optional[Any]) -> None:
        for name, value in (stats.reduce() if stats is not None else {}).items():
            self.counts[name] = value + (0 if name == "kvcache_connected" else self.counts.get(name, 0))

    def _compute(self, name: str, computed: int, count: int) -> Set[int]:
        """Writes what the model computes for a request's next tokens; returns the pages before them that are wrong."""
        tokens = list(self._requests[name].all_token_ids)
        (pages,) = self.scheduler.kv_cache_manager.get_block_ids(name)
        size = LAYERS * self.page
        mistaken = set()
        for block in range(-(-computed // TOKENS)):
            if self.read(pages[block]) != expected(tokens[: min(computed, (block + 1) * TOKENS)], size):
                mistaken.add(pages[block])
        end = computed + count
        for block in range(computed // TOKENS, -(-end // TOKENS)):
            of = tokens[: min(end, (block + 1) * TOKENS)]
            self._write(pages[block], expected([*of, -1] if mistaken else of, size))
            if mistaken:
                self._upon_wrong.add(pages[block])
        return mistaken

    def close(self) -> None:
        self.worker.shutdown()
        self.scheduler.shutdown()
