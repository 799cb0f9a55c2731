"""Measures the connector for vLLM on the CPU: python -m engines.measure_vllm, with the Python of a vLLM that
``./kvcache test --engines`` has installed.

A Llama of 8 layers of 1,024 in float32, prompts of 1,501 tokens that share nothing, one thread. First an engine without
a cache and one that stores are asked in turns, then one that loads. Prints medians, and their ratios to computing.
"""

from __future__ import annotations

import pathlib
import random
import statistics
import tempfile
from typing import Any, Dict, List

from engines.test_vllm import Engine, cpu
from engines.vllm_engine import make_model
from tests.serving import Server

_PROMPTS = 9
_SHAPE = {
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_hidden_layers": 8,
    "num_attention_heads": 16,
    "num_key_value_heads": 4,
    "torch_dtype": "float32",
}


def main() -> None:
    source = random.Random(11)
    asked = [[source.randrange(3, 32000) for _ in range(1501)] for _ in range(_PROMPTS + 1)]  # the first warms up
    with tempfile.TemporaryDirectory(prefix="kvcache-measure-") as folder:
        model = pathlib.Path(folder) / "model"
        make_model(model, **_SHAPE)
        server = Server("1GiB")
        transfer = cpu(server.address)
        try:
            plain, storing = Engine(model), Engine(model, kv_transfer_config=transfer)
            plain.ready(), storing.ready()
            rows: Dict[str, List[Dict[str, Any]]] = {"computed": [], "computed and stored": [], "loaded": []}
            for number, prompt in enumerate(asked):
                pair = [("computed", plain), ("computed and stored", storing)]
                for name, engine in pair if number % 2 else reversed(pair):
                    rows[name].append(engine.ask(generate=[prompt], tokens=1))
            storing.close()
            loading = Engine(model, kv_transfer_config=transfer).ready()
            rows["loaded"] = [loading.ask(generate=[prompt], tokens=1) for prompt in asked]
            loading.close(), plain.close()
        finally:
            server.close()
    base = {}
    for name, answers in rows.items():
        for unit in ("seconds", "processor"):
            median = statistics.median(each[unit] for each in answers[1:])
            base.setdefault(unit, median)
            print(f"{name:20} {unit:10} {median:8.3f} s, {median / base[unit]:.3f} of computing")
    print("tokens that were cached:", [each["cached"][0] for each in rows["loaded"]])
    same = all(answer["tokens"] == rows["computed"][at]["tokens"] for at, answer in enumerate(rows["loaded"]))
    print("tokens equal" if same else "TOKENS DIFFER")


if __name__ == "__main__":
    main()
