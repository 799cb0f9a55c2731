"""A secondary tier for vLLM's tiering offload: blocks move between vLLM's primary tier and a KVCache server.

Configured by ``kv_connector_extra_config``::

    {"spec_name": "TieringOffloadingSpec", "cpu_bytes_to_use": 8589934592,
     "secondary_tiers": [{"type": "kvcache", "address": "127.0.0.1:7420"}]}

vLLM calls this interface experimental; ``kvcache.vllm_compat`` names the versions that were tried.
"""

from __future__ import annotations

import collections
import contextlib
import logging
import threading
import time
from collections.abc import Iterable, Sequence
from typing import Any, Callable, Deque, Dict, List, Optional, Set, Tuple

from vllm.v1.kv_offload.base import LookupResult, Medium, RequestOffloadingContext
from vllm.v1.kv_offload.tiering.base import JobResult, SecondaryTierManager

from kvcache import vllm_compat
from kvcache.client import Result
from kvcache.cluster import open_mover
from kvcache.errors import KvCacheError
from kvcache.memory import address_of
from kvcache.reset import Reset
from kvcache.settings import NAMES, identity, open_client, split
from kvcache.vllm_metrics import LOADS, STORES, Connected, Counts, metric_definitions, tier_stats

logger = logging.getLogger(__name__)

_MOST_FAILED = 65_536
_UNASKED = object()


class _Hinted:
    """A request that says something of its blocks, which the server hears when all of them are stored."""

    def __init__(self, hints: vllm_compat.Hints) -> None:
        self.hints = hints
        self.keys: Dict[bytes, None] = {}
        """In the order in which they were first named."""
        self.jobs = 0
        self.finished: Any = None
        """The request's context, once it has finished."""


class KvCacheTier(SecondaryTierManager):
    """Blocks of vLLM in a KVCache server.

    It runs in the scheduler's process. Look-ups read the server's index in shared memory, jobs are messages of some
    hundred bytes, and the server copies between its memory and vLLM's rows. Nothing here waits, except ``drain_jobs``
    and the constructor, and nothing raises into the scheduler: what cannot be done is a miss or a failed job.

    :param model: what the blocks are of; from vLLM's configuration by default
    :param locality: LOCAL or REMOTE, where the server is; told to vLLM's filters of tiers and in its events
    :param enable_kv_events: whether vLLM publishes what is stored here, where its KV events are on
    :param settings: address, tenant, secret_file, tls, timeout
    """

    medium = Medium.STORAGE

    @classmethod
    def build_metric_definitions(cls, extra_config: Dict[str, Any]) -> Dict[str, Any]:
        """Describes the counters of ``get_stats`` for vLLM's metrics."""
        return metric_definitions()

    def __init__(
        self,
        offloading_spec: Any = None,
        primary_kv_view: Any = None,
        tier_type: str = "kvcache",
        backpressure_detector: Any = None,
        *,
        model: Optional[str] = None,
        locality: Optional[str] = None,
        enable_kv_events: bool = False,
        **settings: Any,
    ) -> None:
        mine, others = split(settings)
        if others:
            raise ValueError(
                f"secondary tier {tier_type} has unknown settings {sorted(others)}; allowed: model, locality,"
                f" enable_kv_events, {', '.join(NAMES)}"
            )
        vllm_compat.check()
        detector = {} if backpressure_detector is None else {"backpressure_detector": backpressure_detector}
        super().__init__(offloading_spec, primary_kv_view, tier_type, **detector)
        self.locality = vllm_compat.locality(locality)
        view = memoryview(primary_kv_view)
        if view.ndim != 2 or view.shape is None or not view.contiguous:
            raise ValueError(f"primary_kv_view has {view.ndim} dimensions; allowed: contiguous rows of bytes")
        self._row_bytes = view.nbytes // view.shape[0]
        self._rows = view.shape[0]
        self._base_address = address_of(view.cast("B"))
        facts = {**vllm_compat.tier_facts(offloading_spec), "row": self._row_bytes}
        if model:
            facts["model"] = model
        self._client = open_client(mine, "kvcache.vllm", *vllm_compat.PACKAGES)
        self._namespace = self._client.namespace(**identity("vllm-tier/2", **facts))
        self._mover = open_mover(self._client, self._namespace)
        if not self._mover.add(self._base_address, self._rows * self._row_bytes):
            logger.warning(
                "vLLM's primary tier is not in a file that can be mapped: blocks are sent over the connection"
            )
        self._client.watch()
        self._done: Deque[Any] = collections.deque()
        self._lock = threading.Lock()
        self._running = 0
        self._failed: Set[bytes] = set()
        self._answers: Dict[bytes, Optional[bool]] = {}
        self._reset = Reset(self._client, lambda: [self._namespace])
        self._refusals = 0
        published = enable_kv_events and vllm_compat.read(offloading_spec, "kv_events_config.enable_kv_cache_events")
        self._events: Optional[Deque[Any]] = collections.deque() if published else None
        self._counts, self._connected = Counts(), Connected()
        self._hinted: Dict[str, _Hinted] = {}

    def lookup(self, key: bytes, req_context: Any) -> Any:
        """Tells at once whether a block is there; asks first where the server's index is not on this host."""
        if self._reset.pending or key in self._failed:
            return LookupResult.MISS
        hinted = self._hinted_of(req_context)
        if hinted is not None:
            hinted.keys[key] = None
        try:
            found = self._namespace.contains_now(key)
        except ValueError as refused:
            self._refuse(refused)
            return LookupResult.MISS
        if found is None:
            if not self._client.connected:
                return LookupResult.MISS
            if self._answers.get(key, _UNASKED) is _UNASKED:
                self._answers[key] = None
                self._namespace.submit_contains(key, lambda answer: self._answers.__setitem__(key, bool(answer)))
                return LookupResult.RETRY
            self._client.poll()
            found = self._answers.get(key)
            if found is None:
                return LookupResult.RETRY
        return LookupResult.HIT if found else LookupResult.MISS

    def submit_store(self, job_metadata: Any) -> None:
        """Begins to copy rows of the primary tier to the server."""
        self._submit(True, job_metadata)

    def submit_load(self, job_metadata: Any) -> None:
        """Begins to copy blocks of the server into rows of the primary tier."""
        self._submit(False, job_metadata)

    def _submit(self, store: bool, job: Any) -> None:
        keys = [bytes(key) for key in job.keys]
        started = time.monotonic()
        hinted = self._hinted_of(job.req_context)
        with self._lock:
            self._running += 1
            if hinted is not None:
                hinted.keys.update(dict.fromkeys(keys))
                hinted.jobs += 1

        def done(results: Sequence[Result], error: Optional[Exception]) -> None:
            self._finish(store, job.job_id, keys, results, error, time.monotonic() - started)
            if hinted is not None:
                with self._lock:
                    hinted.jobs -= 1
                    over = hinted.finished is not None and hinted.jobs == 0
                if over:
                    self._tell(hinted)

        if self._reset.pending:
            done([], KvCacheError("what was stored before a reset is not dropped yet"))
            return
        try:
            self._mover.submit(store, self._values(keys, vllm_compat.rows_of(job)), done)
        except Exception as refused:
            self._refuse(refused)
            done([], refused)

    def _values(self, keys: Sequence[bytes], rows: Sequence[int]) -> List[Tuple[bytes, Sequence[Tuple[int, int]]]]:
        base, size = self._base_address, self._row_bytes
        outside = [row for row in rows if not 0 <= row < self._rows]
        if outside or len(rows) != len(keys):
            raise ValueError(f"rows {outside or rows} for {len(keys)} keys; allowed: one each, below {self._rows}")
        return [(key, ((base + row * size, size),)) for key, row in zip(keys, rows)]

    def _refuse(self, why: Exception) -> None:
        self._refusals += 1
        if self._refusals == 1:
            logger.warning("KVCache refused what vLLM has asked for, and vLLM goes on without it: %s", why)

    def _finish(
        self,
        store: bool,
        job_id: int,
        keys: List[bytes],
        results: Sequence[Result],
        error: Optional[Exception],
        seconds: float,
    ) -> None:
        counter = STORES if store else LOADS
        for result in results:
            self._counts.add(counter, result.name.lower())
        if error is not None:
            logger.debug("job %s failed: %s", job_id, error)
            self._counts.add(counter, "failed", len(keys) - len(results))
        good = [key for key, each in zip(keys, results) if (each.stored if store else each == Result.COPIED)]
        copied = sum(each == Result.COPIED for each in results)
        if store:
            # A block that the server declined, or had no room for, is stored when it is computed the next time.
            self._answers_changed(good)
            result = vllm_compat.job_result(JobResult, job_id, error is None, None, self._row_bytes * copied, seconds)
        else:
            whole = error is None and len(good) == len(keys)
            if not whole:
                kept = set(good)
                self._remember_failed(key for key in keys if key not in kept)
            part = None if whole else tuple(good)
            result = vllm_compat.job_result(JobResult, job_id, whole, part, self._row_bytes * copied, seconds)
        with self._lock:
            self._running -= 1
            self._done.append(result)
            if store and good and self._events is not None:
                self._events.append(vllm_compat.stored_event(good, self.medium, self.locality))

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

    def take_events(self) -> List[Any]:
        """Returns what was stored since the last call. What the server evicts is not told: it is others' too."""
        if self._events is None:
            return []
        with self._lock:
            events = list(self._events)
            self._events.clear()
        return events

    def touch(self, keys: Iterable[bytes], req_context: Any) -> None:
        """Says that blocks are used now, though they are not loaded from here."""
        self._say(lambda: self._namespace.expect([bytes(key) for key in keys]))

    def get_stats(self) -> Any:
        """Returns what was counted since the last call, or None."""
        return tier_stats(self._counts.take(), self._connected.take(self._client.connected))

    def on_new_request(self, req_context: Any) -> Any:
        """Reads what the request says of its blocks; has no wish of how they are offloaded."""
        try:
            hints = vllm_compat.Hints.of(req_context)
            if hints is not None:
                self._hinted[req_context.req_id] = _Hinted(hints)
        except (ValueError, TypeError) as wrong:
            self._refuse(wrong)
        return RequestOffloadingContext()

    def on_request_finished(self, req_context: Any) -> None:
        """Forgets what was answered, so that the next request hears of the server anew."""
        self._answers.clear()
        self._failed.clear()
        hinted = self._hinted_of(req_context)
        if hinted is not None:
            del self._hinted[req_context.req_id]
            with self._lock:
                hinted.finished = req_context
                over = hinted.jobs == 0
            if over:
                self._tell(hinted)

    def _hinted_of(self, req_context: Any) -> Optional[_Hinted]:
        return self._hinted.get(req_context.req_id) if self._hinted else None

    def _tell(self, hinted: _Hinted) -> None:
        """Gives the server a request's hints about all its blocks."""
        keys = vllm_compat.in_order(hinted.keys, hinted.finished)
        if keys:
            self._say(lambda: hinted.hints.give(self._namespace, keys))

    def _say(self, hint: Callable[[], None]) -> None:
        """Gives a hint; one that cannot be given costs hits alone."""
        try:
            hint()
        except Exception as refused:
            self._refuse(refused)

    def on_schedule_end(self, context: Any = None) -> None:
        """Takes what has arrived, and asks again for a drop that the server has not made yet."""
        self._reset.ask()

    def has_pending_work(self) -> bool:
        """Whether jobs run, or results wait to be taken."""
        with self._lock:
            return self._running > 0 or bool(self._done)

    def drain_jobs(self) -> None:
        """Waits until no job runs, no longer than their time, and drops what is stored.

        vLLM calls it in a reset of its caches alone, when the weights change: blocks of the old ones must not be found.
        Until the server has dropped them nothing is found and nothing stored.
        """
        self._drain()
        self._reset.begin()
        with contextlib.suppress(KvCacheError):
            self._client.connect()  # after the server was away, the background may still be about to
        if not self._reset.drop():
            logger.warning(
                "KVCache: the server does not answer; it is asked again to drop what was stored before the reset"
            )

    def _drain(self) -> None:
        end = time.monotonic() + self._client.timeout + 2
        while time.monotonic() < end:
            self._client.poll()
            with self._lock:
                if self._running == 0:
                    return
            time.sleep(0.0005)

    def shutdown(self) -> None:
        """Waits for running jobs, ends the session, and lets go of vLLM's memory."""
        self._drain()
        self._mover.close()
        self._client.close()
        self._primary_kv_view = None
