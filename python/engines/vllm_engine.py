"""A real vLLM on the CPU that does what it is told, a line of JSON each: python -m engines.vllm_engine FOLDER OPTIONS

FOLDER gets the model's configuration: a small Llama whose weights are random by a fixed seed. OPTIONS are arguments of
``vllm.LLM`` as JSON. Orders come from standard input, answers go to the descriptor of ANSWERS_TO:

    {"generate": [[token, …], …], "tokens": 16}   tokens of the answers, how many tokens of the prompts were cached, and
                                                  the seconds of wall and processor for all; "more": arguments beside
    {"reset": true}                               whether vLLM reset its caches and the connector's
    {"metrics": true}                             vLLM's counters that are not 0
"""

from __future__ import annotations

import json
import os
import pathlib
import sys
import time
from typing import Any, Dict

_MODEL = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_act": "silu",
    "hidden_size": 256,
    "intermediate_size": 1024,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 32000,
    "max_position_embeddings": 4096,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "bos_token_id": 1,
    "eos_token_id": 2,
}


def environment() -> Dict[str, str]:
    """What a process of vLLM needs to run alone, in one thread and without asking the network."""
    return {
        **os.environ,
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
    }


def make_model(folder: pathlib.Path, **changes: Any) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps({**_MODEL, **changes}))


def _metrics(llm: Any) -> Dict[str, float]:
    found: Dict[str, float] = {}
    for metric in llm.get_metrics():
        value = getattr(metric, "value", None)
        if isinstance(value, (int, float)) and value and not metric.name.endswith("_info"):
            labels = {name: label for name, label in metric.labels.items() if name not in ("model_name", "engine")}
            found[metric.name + (json.dumps(labels) if labels else "")] = value
    return found


def main() -> None:
    folder, options = pathlib.Path(sys.argv[1]), json.loads(sys.argv[2])
    answers = os.fdopen(int(os.environ["ANSWERS_TO"]), "w", buffering=1)

    from vllm import LLM, SamplingParams
    from vllm.config import KVEventsConfig

    if "kv_events_config" in options:
        options["kv_events_config"] = KVEventsConfig(**options["kv_events_config"])
    llm = LLM(
        str(folder),
        load_format="dummy",
        skip_tokenizer_init=True,
        enforce_eager=True,
        seed=0,
        max_model_len=2048,
        disable_log_stats=False,
        distributed_executor_backend="uni",
        kv_cache_memory_bytes=128 << 20,
        **options,
    )
    answers.write('{"ready": true}\n')
    for line in sys.stdin:
        order = json.loads(line)
        answer: Dict[str, Any] = {}
        if "generate" in order:
            sampling = SamplingParams(
                temperature=0,
                max_tokens=order["tokens"],
                ignore_eos=True,
                detokenize=False,
                extra_args=order.get("more"),
            )
            prompts = [{"prompt_token_ids": each} for each in order["generate"]]
            began, used = time.monotonic(), time.process_time()
            outputs = llm.generate(prompts, sampling, use_tqdm=False)
            answer["seconds"], answer["processor"] = time.monotonic() - began, time.process_time() - used
            answer["tokens"] = [list(each.outputs[0].token_ids) for each in outputs]
            answer["cached"] = [each.num_cached_tokens for each in outputs]
        if "reset" in order:
            answer["reset"] = llm.reset_prefix_cache(reset_connector=bool(order["reset"]))
        if "metrics" in order:
            answer["metrics"] = _metrics(llm)
        answers.write(json.dumps(answer) + "\n")
    if hasattr(llm, "shutdown"):
        llm.shutdown()


if __name__ == "__main__":
    main()
