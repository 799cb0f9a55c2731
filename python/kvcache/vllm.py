"""A secondary tier for vLLM's tiering offload: blocks move between vLLM's primary tier and a KVCache server.

Configured by ``kv_connector_extra_config``::

    {"spec_name": "TieringOffloadingSpec", "cpu_bytes_to_use": 8589934592,
     "secondary_tiers": [{"type": "KvCacheTier", "module_path": "kvcache.vllm", "address": "127.0.0.1:7420"}]}

vLLM calls this interface experimental. This module follows its main branch of July and August 2026 and takes the
names of both.
"""

from __future__ import annotations

import collections
import logging
import os
import threading
import time
from collections.abc import Iterable
from typing import Any, Deque, Dict, List, Optional, Set, Tuple

import vllm.v1.kv_offload.base as _base
from vllm.v1.kv_offload.base import RequestOffloadingContext
from vllm.v1.kv_offload.tiering.base import JobResult, SecondaryTierManager

from kvcache.client import Result
from kvcache.errors import KvCacheError
from kvcache.memory import address_of
from kvcache.mover import Mover
from kvcache.settings import NAMES, open_client, split

logger = logging.getLogger(__name__)

_LookupResult = getattr(_base, "LookupResult", None)
_HIT: Any = True if _LookupResult is None else _LookupResult.HIT
_MISS: Any = False if _LookupResult is None else _LookupResult.MISS
_RETRY: Any = None if _LookupResult is None else _LookupResult.RETRY
_MOST_FAILED = 65_536
_UNASKED = object()


def _first(owner: Any, *paths: str) -> Any:
    """Returns the first attribute of several dotted paths that is there."""
    for path in paths:
        found = owner
        for name in path.split("."):
            found = getattr(found, name, None)
        if found is not None:
            return found
    return None


class KvCacheTier(SecondaryTierManager):
    """Blocks of vLLM in a KVCache server.

    It runs in the scheduler's process. Look-ups read the server's index in shared memory, jobs are messages of some
    hundred bytes, and the server copies between its memory and vLLM's rows. Nothing here waits, except ``drain_jobs``
    and the constructor.

    :param model: what the blocks are of; from vLLM's configuration by default
    :param settings: address, tenant, secret_file, tls, timeout
    """

    if hasattr(_base, "Medium"):
        medium = _base.Medium.STORAGE

    def __init__(
        self,
        offloading_spec: Any = None,
        primary_kv_view: Any = None,
        tier_type: str = "KvCacheTier",
        *,
        model: Optional[str] = None,
        **settings: Any,
    ) -> None:
        mine, others = split(settings)
        if others:
            raise ValueError(
                f"secondary tier {tier_type} has unknown settings {sorted(others)}; allowed: model, {', '.join(NAMES)}"
            )
        super().__init__(offloading_spec, primary_kv_view, tier_type)
        view = memoryview(primary_kv_view)
        if view.ndim != 2 or view.shape is None or not view.contiguous:
            raise ValueError(f"primary_kv_view has {view.ndim} dimensions; allowed: contiguous rows of bytes")
        self._spec = offloading_spec
        self._row_bytes = view.nbytes // view.shape[0]
        self._rows = view.shape[0]
        self._base_address = address_of(view.cast("B"))
        self._view = view
        name = model or _first(offloading_spec, "vllm_config.model_config.model", "model_name", "model_config.model")
        if not name:
            raise ValueError("the model's name is not in vLLM's configuration; set \"model\" in the tier's settings")
        if os.environ.get("PYTHONHASHSEED") in (None, "", "random"):
            logger.warning(
                "PYTHONHASHSEED is not set: this engine's keys differ from those of every other process, so nothing is"
                " shared or found again. Set it to the same number everywhere, 0 for example."
            )
        self._client = open_client(mine)
        self._namespace = self._client.namespace(str(name), dtype=self._dtype(), layout=self._layout())
        self._mover = Mover(self._client, self._namespace)
        if not self._mover.add(self._base_address, self._rows * self._row_bytes):
            logger.warning(
                "vLLM's primary tier is not in a file that can be mapped: blocks are sent over the connection"
            )
        self._done: Deque[Any] = collections.deque()
        self._lock = threading.Lock()
        self._running = 0
        self._failed: Set[bytes] = set()
        self._answers: Dict[bytes, Optional[bool]] = {}

    def _dtype(self) -> str:
        spec = self._spec
        found = _first(spec, "vllm_config.cache_config.cache_dtype", "cache_dtype")
        model = _first(spec, "vllm_config.model_config.dtype", "model_config.dtype")
        return "/".join(str(each) for each in (found, model) if each is not None)

    def _layout(self) -> str:
        """All that tells apart rows of equal keys."""
        spec = self._spec
        parallel = _first(spec, "vllm_config.parallel_config", "parallel_config")
        sizes = [getattr(parallel, name, 1) for name in ("tensor_parallel_size", "pipeline_parallel_size")]
        factor = _first(spec, "blocks_per_chunk", "block_size_factor") or 1
        return f"vllm/{self._row_bytes}/{sizes[0]}x{sizes[1]}/{factor}"

    def lookup(self, key: bytes, req_context: Any) -> Any:
        """Tells at once whether a block is there; asks first where the server's index is not on this host."""
        if key in self._failed:
            return _MISS
        found = self._namespace.contains_now(key)
        if found is None:
            if not self._client.connected:
                return _MISS
            if self._answers.get(key, _UNASKED) is _UNASKED:
                self._answers[key] = None
                self._namespace.submit_contains(key, lambda answer: self._answers.__setitem__(key, bool(answer)))
                return _RETRY
            self._client.poll()
            found = self._answers.get(key)
            if found is None:
                return _RETRY
        return _HIT if found else _MISS

    def submit_store(self, job_metadata: Any) -> None:
        """Begins to copy rows of the primary tier to the server."""
        self._submit(True, job_metadata)

    def submit_load(self, job_metadata: Any) -> None:
        """Begins to copy blocks of the server into rows of the primary tier."""
        self._submit(False, job_metadata)

    def _submit(self, store: bool, job: Any) -> None:
        keys = [bytes(key) for key in job.keys]
        base, size = self._base_address, self._row_bytes
        values = []
        for key, row in zip(keys, job.block_ids):
            if not 0 <= int(row) < self._rows:
                raise ValueError(f"block {row}; the primary tier has {self._rows}")
            values.append((key, ((base + int(row) * size, size),)))
        started = time.monotonic()
        with self._lock:
            self._running += 1

        def done(results: List[Result], error: Optional[KvCacheError]) -> None:
            self._finish(store, job.job_id, keys, results, error, time.monotonic() - started)

        self._mover.submit(store, values, done)

    def _finish(
        self,
        store: bool,
        job_id: int,
        keys: List[bytes],
        results: List[Result],
        error: Optional[KvCacheError],
        seconds: float,
    ) -> None:
        if error is not None:
            logger.debug("job %s failed: %s", job_id, error)
        if store:
            # A block that the server declined, or had no room for, is stored when it is computed the next time.
            self._answers_changed(key for key, result in zip(keys, results) if result.stored)
            result = _result(job_id, error is None, None, self._row_bytes * len(results), seconds)
        else:
            good = [key for key, each in zip(keys, results) if each == Result.COPIED]
            whole = error is None and len(good) == len(keys)
            if not whole:
                kept = set(good)
                self._remember_failed(key for key in keys if key not in kept)
            result = _result(job_id, whole, None if whole else tuple(good), self._row_bytes * len(good), seconds)
        with self._lock:
            self._running -= 1
            self._done.append(result)

    def _answers_changed(self, keys: Iterable[bytes]) -> None:
        for key in keys:
            self._answers.pop(key, None)
            self._failed.discard(key)

    def _remember_failed(self, keys: Iterable[bytes]) -> None:
        """A block that could not be loaded is a miss until it is stored again, or its request has ended."""
        if len(self._failed) > _MOST_FAILED:
            self._failed.clear()
        for key in keys:
            self._failed.add(key)
            self._answers.pop(key, None)

    def get_finished_jobs(self) -> List[Any]:
        """Returns the results of the jobs that are done since the last call."""
        self._client.poll()
        with self._lock:
            results = list(self._done)
            self._done.clear()
        return results

    def get_finished(self) -> List[Any]:
        """The name of ``get_finished_jobs`` until July 2026."""
        return self.get_finished_jobs()

    def on_new_request(self, req_context: Any) -> Any:
        """Has no wish of how a request's blocks are offloaded."""
        return RequestOffloadingContext()

    def on_request_finished(self, req_context: Any) -> None:
        """Forgets what was answered, so that the next request hears of the server anew."""
        self._answers.clear()
        self._failed.clear()

    def on_schedule_end(self, context: Any = None) -> None:
        """Takes what has arrived."""
        self._client.poll()

    def has_pending_work(self) -> bool:
        """Whether jobs run, or results wait to be taken."""
        with self._lock:
            return self._running > 0 or bool(self._done)

    def drain_jobs(self) -> None:
        """Waits until no job runs, no longer than their time."""
        end = time.monotonic() + self._client.timeout + 2
        while time.monotonic() < end:
            self._client.poll()
            with self._lock:
                if self._running == 0:
                    return
            time.sleep(0.0005)

    def shutdown(self) -> None:
        """Waits for running jobs and ends the session."""
        self.drain_jobs()
        self._mover.close()
        self._client.close()


def _result(job_id: int, success: bool, good: Optional[Tuple[bytes, ...]], transferred: int, seconds: float) -> Any:
    """A JobResult with those fields that this vLLM has."""
    fields = getattr(JobResult, "__dataclass_fields__", {})
    told: Dict[str, Any] = {"job_id": job_id, "success": success}
    for name, value in (
        ("successful_keys", good),
        ("succeeded_keys", good),
        ("transfer_size", transferred),
        ("transfer_time", seconds),
    ):
        if name in fields:
            told[name] = value or None if name.endswith("keys") else value
    return JobResult(**told)
