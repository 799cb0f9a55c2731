"""Client of the KVCache server: keys and values of LLM engines, moved through shared memory.

``connect`` opens a client of one server, or of a cluster, by the protocol of PROTOCOL.md with the standard library alone.
``kvcache.vllm``, ``kvcache.vllm_cpu``, ``kvcache.sglang``, ``kvcache.sglang_linker`` and ``kvcache.lmcache`` plug it into
these engines; each is imported by its engine. ``kvcache.gpu`` moves blocks to and from memory of a GPU, and
``kvcache.vllm_gpu`` those of vLLM.
"""

from kvcache.blocks import Blocks, BlockShape, Chain, Match
from kvcache.client import Client, Job, Namespace, Region
from kvcache.cluster import ClusterClient, connect, open_mover
from kvcache.errors import ConnectionLost, KvCacheError, Rejected, Status
from kvcache.memory import locate
from kvcache.wire import PACKAGE_VERSION, Result

__version__ = PACKAGE_VERSION

__all__ = [
    "BlockShape",
    "Blocks",
    "Chain",
    "Client",
    "ClusterClient",
    "ConnectionLost",
    "Job",
    "KvCacheError",
    "Match",
    "Namespace",
    "Region",
    "Rejected",
    "Result",
    "Status",
    "connect",
    "locate",
    "open_mover",
]
