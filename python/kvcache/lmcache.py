"""An L2 adapter for LMCache's multi-process mode: objects move between LMCache's L1 memory and a KVCache server.

Configured by::

    {"type": "plugin", "module_path": "kvcache.lmcache", "class_name": "KvCacheL2Adapter",
     "adapter_params": {"address": "127.0.0.1:7420"}}

Where LMCache's L1 memory is a shared mapping, the server copies from and to it; elsewhere objects are sent.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Sequence
from typing import Any, Dict, List, Optional

from kvcache.client import Result
from kvcache.errors import KvCacheError
from kvcache.lmcache_compat import Bitmap, L2AdapterInterface, L2StoreResult, check_version
from kvcache.memory import address_of
from kvcache.mover import Mover, Value
from kvcache.settings import NAMES, open_client, split

logger = logging.getLogger(__name__)

_LOCK_SECONDS = 60.0
"""How long a look-up keeps what it found in memory, unless LMCache unlocks it before."""


class KvCacheL2Adapter(L2AdapterInterface):
    """Objects of LMCache in a KVCache server.

    Threads: any, as LMCache's store and prefetch controllers call it. Nothing here waits, except the constructor and
    ``close``.

    :param config: the ``adapter_params``: address, tenant, secret_file, tls, timeout
    """

    def __init__(self, config: Any = None, l1_memory_desc: Any = None, **_: Any) -> None:
        super().__init__()
        check_version()
        mine, others = split(dict(config or {}))
        if others:
            raise ValueError(f"adapter_params has unknown settings {sorted(others)}; allowed: {', '.join(NAMES)}")
        self._client = open_client(mine)
        self._namespace = self._client.namespace("lmcache", layout="lmcache/1")
        self._mover = Mover(self._client, self._namespace)
        if l1_memory_desc is not None and not self._mover.add(int(l1_memory_desc.ptr), int(l1_memory_desc.size)):
            logger.warning("LMCache's L1 memory is not in a file that can be mapped: objects are sent")
        self._client.watch()
        flags = os.EFD_NONBLOCK | os.EFD_CLOEXEC
        self._store_event, self._lookup_event, self._load_event = (os.eventfd(0, flags) for _ in range(3))
        self._lock = threading.Lock()
        self._task = 0
        # Results by the event that tells of them, and by task. The dictionaries stay the same.
        self._results: Dict[int, Dict[int, Any]] = {
            event: {} for event in (self._store_event, self._lookup_event, self._load_event)
        }
        self._closed = False

    def get_store_event_fd(self) -> int:
        """Signalled when a store task is done."""
        return self._store_event

    def get_lookup_and_lock_event_fd(self) -> int:
        """Signalled when a look-up is done."""
        return self._lookup_event

    def get_load_event_fd(self) -> int:
        """Signalled when a load task is done."""
        return self._load_event

    @staticmethod
    def _key(key: Any) -> bytes:
        """All fields of a key; the model's name and the salt have no ``@``."""
        fields = f"{key.model_name}@{key.kv_rank:x}@{key.object_group_id}@{key.cache_salt}@"
        return fields.encode() + bytes(key.chunk_hash)

    def _values(self, keys: Sequence[Any], objects: Sequence[Any]) -> List[Value]:
        values: List[Value] = []
        for key, memory in zip(keys, objects):
            pointer = getattr(memory, "data_ptr", None)
            if pointer is None:
                buffer = memoryview(memory.byte_array).cast("B")
                address, size = address_of(buffer), buffer.nbytes
            else:
                address = int(pointer() if callable(pointer) else pointer)
                size = int(memory.get_size())
            values.append((self._key(key), ((address, size),)))
        return values

    def _next(self) -> int:
        with self._lock:
            self._task += 1
            return self._task

    def _finish(self, event: int, task: int, result: Any) -> None:
        with self._lock:
            if self._closed:
                return
            self._results[event][task] = result
            os.eventfd_write(event, 1)

    def _take(self, event: int, task: int) -> Any:
        with self._lock:
            return self._results[event].pop(task, None)

    def submit_store_task(self, keys: List[Any], objects: List[Any]) -> int:
        """Begins to store objects."""
        task = self._next()
        values = self._values(keys, objects)
        sizes = [size for _, ((_, size),) in values]

        def done(results: List[Result], error: Optional[KvCacheError]) -> None:
            success = error is None
            stored = [number for number, result in enumerate(results) if result.stored]
            moved = sum(size for size, result in zip(sizes, results) if result == Result.COPIED)
            if stored:
                self._notify_keys_stored([keys[each] for each in stored], [sizes[each] for each in stored])
            self._finish(self._store_event, task, L2StoreResult(success, moved))

        self._mover.submit(True, values, done)
        return task

    def pop_completed_store_tasks(self) -> Dict[int, Any]:
        """Returns the store tasks that are done since the last call."""
        with self._lock:
            done = dict(self._results[self._store_event])
            self._results[self._store_event].clear()
        return done

    def submit_lookup_and_lock_task(self, keys: List[Any], group_layout_descs: Any) -> int:
        """Looks objects up, and keeps those that are in memory there for a minute."""
        task = self._next()
        names = [self._key(key) for key in keys]
        bitmap = Bitmap(len(keys))
        answers = [self._namespace.contains_now(name) for name in names]
        if None not in answers:
            self._answer(task, keys, names, answers, bitmap)
            return task
        left = [len(keys)]
        asked: List[Optional[bool]] = [None] * len(keys)

        def hear(number: int, answer: Optional[bool]) -> None:
            asked[number] = answer
            with self._lock:
                left[0] -= 1
                last = left[0] == 0
            if last:
                self._answer(task, keys, names, asked, bitmap)

        if not keys:
            self._answer(task, keys, names, asked, bitmap)
        for number, name in enumerate(names):
            self._namespace.submit_contains(name, lambda answer, number=number: hear(number, answer))  # type: ignore[misc]
        return task

    def _answer(
        self, task: int, keys: Sequence[Any], names: Sequence[bytes], answers: Sequence[Optional[bool]], bitmap: Any
    ) -> None:
        found = [number for number, answer in enumerate(answers) if answer]
        for number in found:
            bitmap.set(number)
        if found:
            self._namespace.pin([names[number] for number in found], _LOCK_SECONDS)
            self._notify_keys_accessed([keys[number] for number in found])
        self._finish(self._lookup_event, task, bitmap)

    def query_lookup_and_lock_result(self, task_id: int) -> Any:
        """Returns the result of a look-up once, or None while it is not done."""
        return self._take(self._lookup_event, task_id)

    def submit_unlock(self, keys: List[Any]) -> None:
        """Ends the locks of a look-up. They end by themselves if the message is lost."""
        self._namespace.pin([self._key(key) for key in keys], 0)

    def submit_load_task(self, keys: List[Any], objects: List[Any]) -> int:
        """Begins to load objects."""
        task = self._next()

        def done(results: List[Result], error: Optional[KvCacheError]) -> None:
            bitmap = Bitmap(len(keys))
            for number, result in enumerate(results):
                if result == Result.COPIED:
                    bitmap.set(number)
            self._finish(self._load_event, task, bitmap)

        self._mover.submit(False, self._values(keys, objects), done)
        return task

    def query_load_result(self, task_id: int) -> Any:
        """Returns the result of a load once, or None while it is not done."""
        return self._take(self._load_event, task_id)

    def delete(self, keys: List[Any]) -> None:
        """Forgets objects."""
        for key in keys:
            try:
                self._namespace.delete(self._key(key))
            except KvCacheError as failed:
                logger.debug("not deleted: %s", failed)

    def report_status(self) -> Dict[str, Any]:
        """Says whether the server answers."""
        return {
            "is_healthy": self._client.connected,
            "type": "KvCacheL2Adapter",
            "address": "{}:{}".format(*self._client.address),
            "shared_memory": self._client.shares_memory,
        }

    def close(self) -> None:
        """Waits for what is being sent, and ends the session."""
        self._mover.close()
        self._client.close()
        with self._lock:
            self._closed = True
            for event in (self._store_event, self._lookup_event, self._load_event):
                os.close(event)
