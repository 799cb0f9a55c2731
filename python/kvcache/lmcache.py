"""An L2 adapter for LMCache's multi-process mode: objects move between LMCache's L1 memory and a KVCache server.

Configured by::

    {"type": "plugin", "module_path": "kvcache.lmcache", "class_name": "KvCacheL2Adapter",
     "adapter_params": {"address": "127.0.0.1:7420"}}

Where LMCache's L1 memory is a shared mapping, the server copies from and to it; elsewhere objects are sent.
"""

from __future__ import annotations

import dataclasses
import heapq
import logging
import os
import threading
import time
from collections.abc import Sequence
from typing import Any, Callable, Dict, List, Optional, Tuple

from kvcache import wire
from kvcache.client import DIGEST_BYTES, Result
from kvcache.cluster import open_mover
from kvcache.errors import KvCacheError
from kvcache.lmcache_compat import (
    Bitmap,
    KeyEntry,
    KeyListPage,
    L2AdapterInterface,
    L2StoreResult,
    ObjectKey,
    check_version,
)
from kvcache.memory import address_of
from kvcache.mover import Value
from kvcache.settings import NAMES, open_client, split

logger = logging.getLogger(__name__)

_CAPACITY = "max_capacity_gb"

_LOCK_SECONDS = 60.0
"""How long a look-up keeps what it found in memory, unless LMCache unlocks it before."""

_FOLLOW_SECONDS = 1.0
"""Between two looks at how much the server has; twenty times as long as the last one took at least."""

_MOST_LOCKS = 65_536
"""Names of locks that are remembered before those whose time is over are looked for."""

_UNNAMED = "kvcache-unnamed"
"""Salt of the keys by which LMCache evicts objects whose own keys are not known."""


class _Object:
    """An object of the server, as LMCache was told of it.

    :param key: LMCache's; None of one that was stored by another process and not looked up since
    :param told: bytes that LMCache counts
    :param size: bytes that the server counts, those of the name included
    :param seen: the listing before which it was stored or seen last
    """

    __slots__ = ("key", "seen", "size", "told")

    def __init__(self, key: Any, told: int, size: int, seen: int) -> None:
        self.key, self.told, self.size, self.seen = key, told, size, seen


class KvCacheL2Adapter(L2AdapterInterface):
    """Objects of LMCache in a KVCache server.

    Threads: any, as LMCache's store and prefetch controllers call it. Nothing here waits, except the constructor,
    ``delete`` and ``close``. Nothing raises into LMCache's threads, except the constructor for settings that are wrong:
    what cannot be done is a miss or a failed task, counted in ``report_status``, and logged once.

    What the server evicts, and what others store and delete, is told to LMCache some seconds later at most.

    :param config: the ``adapter_params``: address, tenant, secret_file, tls, timeout, and max_capacity_gb, the GiB from
        which LMCache's own eviction by watermark counts; 0, the default, for none
    """

    def __init__(self, config: Any = None, l1_memory_desc: Any = None, **_: Any) -> None:
        mine, others = split(dict(config or {}))
        capacity = others.pop(_CAPACITY, 0)
        if others:
            allowed = ", ".join((*NAMES, _CAPACITY))
            raise ValueError(f"adapter_params has unknown settings {sorted(others)}; allowed: {allowed}")
        if not isinstance(capacity, (int, float)) or not 0 <= capacity <= 1 << 30:
            raise ValueError(f"{_CAPACITY} = {capacity!r:.100}; allowed: 0 to {1 << 30}")
        super().__init__(int(capacity * (1 << 30)))
        check_version()
        self._client = open_client(mine, "kvcache.lmcache", "lmcache")
        self._namespace = self._client.namespace("lmcache", layout="lmcache/1")
        self._mover = open_mover(self._client, self._namespace)
        if l1_memory_desc is not None and not self._mover.add(int(l1_memory_desc.ptr), int(l1_memory_desc.size)):
            logger.warning(
                "LMCache's L1 memory is not in a file that can be mapped: objects are sent, which takes longer. Start"
                " lmcache server with --no-l1-use-lazy --shm-name NAME"
            )
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
        self._counts = dict.fromkeys(("lookups", "hits", "stored", "loaded", "refused", "failed_tasks"), 0)
        self._warned: set = set()
        self._answers = True
        self._locks: Dict[bytes, Tuple[int, float]] = {}
        # Held while LMCache is told of objects, so that it hears of each in order.
        self._books = threading.RLock()
        self._objects: Dict[bytes, _Object] = {}
        self._bytes = 0
        self._unnamed_bytes = 0
        self._listings = 0
        self._ending = threading.Event()
        self._follower = threading.Thread(target=self._follow, name="kvcache-lmcache", daemon=True)
        self._follower.start()

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
        return fields.encode("utf-8", "surrogatepass") + bytes(key.chunk_hash)

    def _names(self, keys: Sequence[Any]) -> List[Optional[bytes]]:
        """The names of keys; None of one that is too long for the server."""
        names: List[Optional[bytes]] = []
        for key in keys:
            name = self._key(key)
            fits = len(name) <= wire.MAX_KEY_BYTES
            if not fits:
                self._refuse("key", f"a key of {len(name)} bytes; allowed: 1 to {wire.MAX_KEY_BYTES}")
            names.append(name if fits else None)
        return names

    def _digest(self, name: bytes) -> bytes:
        return self._namespace.key_digest(name)[:DIGEST_BYTES]

    def _refuse(self, kind: str, why: str, count: int = 1) -> None:
        """Counts what was refused, and logs the first of each kind."""
        with self._lock:
            self._counts["refused"] += count
            first = kind not in self._warned
            self._warned.add(kind)
        if first:
            logger.warning("KVCache keeps no such object: %s. Others like it are only counted", why)

    def _values(self, names: Sequence[Optional[bytes]], objects: Sequence[Any]) -> Tuple[List[int], List[Value]]:
        """What can be moved, and which of the task it is."""
        numbers: List[int] = []
        values: List[Value] = []
        for number, (name, memory) in enumerate(zip(names, objects)):
            pointer = getattr(memory, "data_ptr", None)
            if pointer is None:
                buffer = memoryview(memory.byte_array).cast("B")
                address, size = address_of(buffer), buffer.nbytes
            else:
                address = int(pointer() if callable(pointer) else pointer)
                size = int(memory.get_size())
            if name is None:
                continue
            most = wire.MAX_PAYLOAD_BYTES - len(name)
            if not 1 <= size <= most:
                self._refuse("size", f"an object of {size} bytes; allowed: 1 to {most}")
                continue
            numbers.append(number)
            values.append((name, ((address, size),)))
        return numbers, values

    def _next(self) -> int:
        with self._lock:
            self._task += 1
            return self._task

    def _count(self, name: str, number: int = 1) -> None:
        with self._lock:
            self._counts[name] += number

    def _hear(self, error: Optional[KvCacheError]) -> None:
        """Logs the first failure after each success."""
        with self._lock:
            first = error is not None and self._answers
            self._answers = error is None
        if first:
            logger.warning("KVCache: %s; LMCache goes on without it until it answers", error)

    def _finish(self, event: int, task: int, result: Any) -> None:
        with self._lock:
            if self._closed:
                return
            self._results[event][task] = result
            os.eventfd_write(event, 1)

    def _take(self, event: int, task: int) -> Any:
        with self._lock:
            return self._results[event].pop(task, None)

    def _begin(self, event: int, nothing: Any, step: Callable[[int], None]) -> int:
        """Begins a task. One that cannot begin has failed: LMCache's controllers end with what is raised into them."""
        task = self._next()
        try:
            step(task)
        except Exception:
            self._count("failed_tasks")
            logger.exception("a task of LMCache's could not begin")
            self._finish(event, task, nothing)
        return task

    def submit_store_task(self, keys: List[Any], objects: List[Any]) -> int:
        """Begins to store objects."""

        def begin(task: int) -> None:
            names = self._names(keys)
            numbers, values = self._values(names, objects)

            def done(results: List[Result], error: Optional[KvCacheError]) -> None:
                stored = [at for at, result in enumerate(results) if result.stored]
                full = results.count(Result.NO_ROOM)
                if full:
                    largest = max(size for _, ((_, size),) in values)
                    self._refuse("room", f"the server has no room now, for objects of up to {largest} bytes", full)
                success = error is None and not full and len(numbers) == len(keys)
                moved = sum(values[at][1][0][1] for at, result in enumerate(results) if result == Result.COPIED)
                self._count("stored", len(stored))
                self._hear(error)
                if not success:
                    self._count("failed_tasks")
                if stored:
                    self._tell_stored([(keys[numbers[at]], values[at][0], values[at][1][0][1]) for at in stored])
                self._finish(self._store_event, task, L2StoreResult(success, moved))

            self._mover.submit(True, values, done)

        return self._begin(self._store_event, L2StoreResult(False, 0), begin)

    def pop_completed_store_tasks(self) -> Dict[int, Any]:
        """Returns the store tasks that are done since the last call."""
        with self._lock:
            done = dict(self._results[self._store_event])
            self._results[self._store_event].clear()
        return done

    def submit_lookup_and_lock_task(self, keys: List[Any], group_layout_descs: Any) -> int:
        """Looks objects up, and keeps those that are in memory there for a minute."""

        def begin(task: int) -> None:
            names = self._names(keys)
            answers = [name is not None and self._namespace.contains_now(name) for name in names]
            asked = [number for number, answer in enumerate(answers) if answer is None]
            left = [len(asked)]
            if not asked:
                self._answer(task, keys, names, answers)

            def hear(number: int, answer: Optional[bool]) -> None:
                answers[number] = answer
                with self._lock:
                    left[0] -= 1
                    last = left[0] == 0
                if last:
                    self._answer(task, keys, names, answers)

            for number in asked:
                self._namespace.submit_contains(names[number], lambda answer, number=number: hear(number, answer))  # type: ignore[misc]

        return self._begin(self._lookup_event, Bitmap(len(keys)), begin)

    def _answer(
        self,
        task: int,
        keys: Sequence[Any],
        names: Sequence[Optional[bytes]],
        answers: Sequence[Optional[bool]],
    ) -> None:
        bitmap = Bitmap(len(keys))
        found = [(key, name) for key, name, answer in zip(keys, names, answers) if answer and name is not None]
        try:
            for number, answer in enumerate(answers):
                if answer:
                    bitmap.set(number)
            self._count("lookups", len(keys))
            self._count("hits", len(found))
            if found:
                self._pin([name for _, name in found])
                self._tell_found(found)
        except Exception:
            logger.exception("a look-up of LMCache's was not recorded")
        self._finish(self._lookup_event, task, bitmap)

    def query_lookup_and_lock_result(self, task_id: int) -> Any:
        """Returns the result of a look-up once, or None while it is not done."""
        return self._take(self._lookup_event, task_id)

    def _pin(self, names: List[bytes]) -> None:
        """Keeps objects once more: they stay until each look-up that found them is unlocked, or its time is over."""
        now = time.monotonic()
        with self._lock:
            if len(self._locks) >= _MOST_LOCKS:
                self._locks = {name: lock for name, lock in self._locks.items() if lock[1] > now}
            for name in names:
                count, until = self._locks.get(name, (0, 0.0))
                self._locks[name] = (count + 1 if until > now else 1, now + _LOCK_SECONDS)
        self._namespace.pin(names, _LOCK_SECONDS)

    def submit_unlock(self, keys: List[Any]) -> None:
        """Ends the locks of a look-up. They end by themselves if the message is lost."""
        try:
            free: List[bytes] = []
            names = [name for name in self._names(keys) if name is not None]
            with self._lock:
                for name in names:
                    count, until = self._locks.pop(name, (1, 0.0))
                    if count > 1:
                        self._locks[name] = (count - 1, until)
                    else:
                        free.append(name)
            if free:
                self._namespace.pin(free, 0)
        except Exception:
            logger.exception("locks of LMCache's end later than it asked for")

    def submit_load_task(self, keys: List[Any], objects: List[Any]) -> int:
        """Begins to load objects."""

        def begin(task: int) -> None:
            numbers, values = self._values(self._names(keys), objects)

            def done(results: List[Result], error: Optional[KvCacheError]) -> None:
                bitmap = Bitmap(len(keys))
                loaded = [number for number, result in zip(numbers, results) if result == Result.COPIED]
                for number in loaded:
                    bitmap.set(number)
                self._count("loaded", len(loaded))
                self._hear(error)
                if error is not None:
                    self._count("failed_tasks")
                self._finish(self._load_event, task, bitmap)

            self._mover.submit(False, values, done)

        return self._begin(self._load_event, Bitmap(len(keys)), begin)

    def query_load_result(self, task_id: int) -> Any:
        """Returns the result of a load once, or None while it is not done."""
        return self._take(self._load_event, task_id)

    def delete(self, keys: List[Any]) -> None:
        """Forgets objects, in one message."""
        try:
            digests: Dict[bytes, Any] = {}
            for key in keys:
                if key.cache_salt == _UNNAMED:
                    digests[bytes(key.chunk_hash)] = key
                else:
                    name = self._names([key])[0]
                    if name is not None:
                        digests[self._digest(name)] = key
            self._namespace.delete_digests(list(digests))
            with self._books:
                unknown = [key for digest, key in digests.items() if digest not in self._objects]
                self._forget([digest for digest in digests if digest in self._objects])
                if unknown:
                    self._notify_keys_deleted(unknown, [0] * len(unknown))
        except KvCacheError as failed:
            logger.debug("not deleted: %s", failed)
        except Exception:
            logger.exception("objects were not deleted")

    def register_listener(self, listener: Any) -> None:
        """Tells a listener of what is stored from now on, and of what is known to be there."""
        with self._books:
            super().register_listener(listener)
            if self._objects:
                keys = [self._shown(digest, each) for digest, each in self._objects.items()]
                listener.on_l2_keys_stored(keys, [each.told for each in self._objects.values()])

    @staticmethod
    def _shown(digest: bytes, each: _Object) -> Any:
        """The key by which LMCache names an object."""
        return each.key if each.key is not None else ObjectKey(digest, "kvcache", 0, 0, _UNNAMED)

    def _tell_stored(self, stored: Sequence[Tuple[Any, bytes, int]]) -> None:
        """Counts objects that were stored now, each with its key, name and size; one that was there is only used."""
        new: List[Any] = []
        sizes: List[int] = []
        again: List[Any] = []
        with self._books:
            for key, name, size in stored:
                digest = self._digest(name)
                before = self._objects.get(digest)
                if before is not None and before.key is not None and before.told == size:
                    before.seen = self._listings
                    again.append(key)
                    continue
                if before is not None:
                    self._forget([digest])
                self._objects[digest] = _Object(key, size, size + len(name), self._listings)
                self._bytes += size + len(name)
                new.append(key)
                sizes.append(size)
            if new:
                self._notify_keys_stored(new, sizes)
            if again:
                self._notify_keys_accessed(again)

    def _tell_found(self, found: Sequence[Tuple[Any, bytes]]) -> None:
        """Counts a use of objects; one whose key was not known is known from now on."""
        named: List[Tuple[Any, bytes, int]] = []
        with self._books:
            if self._unnamed_bytes:
                for key, name in found:
                    each = self._objects.get(self._digest(name))
                    if each is not None and each.key is None:
                        named.append((key, name, each.size - len(name)))
            if named:
                self._tell_stored(named)
            self._notify_keys_accessed([key for key, _ in found])

    def _forget(self, digests: Sequence[bytes]) -> None:
        """Tells LMCache that known objects are gone; the books are held."""
        keys: List[Any] = []
        sizes: List[int] = []
        unnamed: List[Any] = []
        for digest in digests:
            each = self._objects.pop(digest)
            self._bytes -= each.size
            if each.key is None:
                self._unnamed_bytes -= each.told
                unnamed.append(self._shown(digest, each))
            else:
                keys.append(each.key)
                sizes.append(each.told)
        if keys:
            self._notify_keys_deleted(keys, sizes)
        if unnamed:
            for listener in self._listeners:
                listener.on_l2_keys_deleted(unnamed)

    def _follow(self) -> None:
        """Follows what the server evicts, and what others store and delete, until this is closed."""
        pause = 0.0
        while not self._ending.wait(pause):
            began = time.monotonic()
            try:
                if self._client.connected and self._namespace.usage() != (len(self._objects), self._bytes):
                    self._compare()
            except KvCacheError as failed:
                logger.debug("not compared with the server: %s", failed)
            except Exception:
                logger.exception("not compared with the server")
            pause = max(_FOLLOW_SECONDS, 20 * (time.monotonic() - began))

    def _compare(self) -> None:
        """Compares with the server's listing. What is stored meanwhile may be missing in it."""
        with self._books:
            self._listings += 1
            listing = self._listings
        there = self._namespace.listing()
        with self._books:
            known = self._objects
            changed = [digest for digest, size in there.items() if digest in known and known[digest].size != size]
            gone = [*(known.keys() - there.keys()), *changed]
            self._forget([digest for digest in gone if known[digest].seen < listing])
            new = there.keys() - known.keys()
            for digest in new:
                known[digest] = _Object(None, there[digest], there[digest], listing)
                self._bytes += there[digest]
                self._unnamed_bytes += there[digest]
            if new:  # LMCache's eviction must know them; its accounts by salt must not
                keys = [self._shown(digest, known[digest]) for digest in new]
                sizes = [there[digest] for digest in new]
                for listener in self._listeners:
                    listener.on_l2_keys_stored(keys, sizes)

    def get_usage(self) -> Any:
        """Returns the bytes of all objects; those whose keys are not known are in no salt's part."""
        with self._books:
            usage = super().get_usage()
            return dataclasses.replace(usage, total_bytes_used=usage.total_bytes_used + self._unnamed_bytes)

    def list_l2_keys(
        self, model_name: Optional[str] = None, page_size: int = 500, cursor: Optional[str] = None
    ) -> Any:
        """Returns a page of the objects whose keys are known: all but those that other processes stored, and that no
        look-up of this one has found since."""
        if page_size < 1:
            raise ValueError(f"page_size = {page_size}; allowed: 1 and up")
        try:
            after = bytes.fromhex(cursor or "")
        except ValueError:
            raise ValueError(f"cursor = {cursor!r:.100}; allowed: what the page before returned") from None
        with self._books:
            page = heapq.nsmallest(
                page_size + 1,
                (
                    digest
                    for digest, each in self._objects.items()
                    if digest > after and each.key is not None and model_name in (None, each.key.model_name)
                ),
            )
            entries = tuple(
                KeyEntry(self._objects[digest].key.to_encoded_object_key(), self._objects[digest].told)
                for digest in page[:page_size]
            )
        return KeyListPage(entries, page[page_size - 1].hex() if len(page) > page_size else None)

    def report_status(self) -> Dict[str, Any]:
        """Says whether the server answers, how objects move, and what was counted since the start."""
        usage = self.get_usage()
        with self._lock:
            counts = dict(self._counts)
        with self._books:
            objects = len(self._objects)
            unnamed = sum(each.key is None for each in self._objects.values()) if self._unnamed_bytes else 0
        return {
            "is_healthy": self._client.connected,
            "type": "KvCacheL2Adapter",
            "address": self._client.server,
            "transfer": "mapped" if self._mover.maps else "sent",
            "objects": objects,
            "objects_without_key": unnamed,
            "current_size_bytes": usage.total_bytes_used,
            "max_capacity_bytes": usage.total_capacity_bytes,
            **counts,
        }

    def close(self) -> None:
        """Waits for what is being sent, and ends the session."""
        self._ending.set()
        self._mover.close()
        self._client.close()
        self._follower.join()
        with self._lock:
            if self._closed:
                return
            self._closed = True
            for event in (self._store_event, self._lookup_event, self._load_event):
                os.close(event)
