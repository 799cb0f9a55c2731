"""The runner of engines' tests: what it pins, in which order it runs, and how it reads the outcome."""

import unittest

from engines import run


class RunnerTest(unittest.TestCase):
    def test_a_wheel_that_names_its_pytorch_gets_that(self) -> None:
        metadata = "Name: vllm\nRequires-Dist: numpy\nRequires-Dist: torch==2.11.0\nRequires-Dist: torch==2.9 ; extra == 'old'\n"
        self.assertEqual(run.overrides_for(metadata).splitlines()[0], "torch==2.11.0")

    def test_a_wheel_that_names_none_gets_what_the_resolver_finds(self) -> None:
        lines = run.overrides_for("Name: lmcache\nRequires-Dist: torch\n").splitlines()
        self.assertEqual([line.partition(" ")[0] for line in lines], list(run._LEFT_OUT))
        self.assertTrue(all("never" in line for line in lines))

    def test_only_sglang_keeps_triton(self) -> None:
        pins = "nvidia-nvtx==1.0\ntorch==2.11.0\ntriton==3.7.1\n"
        self.assertEqual(run.without_unneeded("vllm", pins), "torch==2.11.0\n")
        self.assertEqual(run.without_unneeded("sglang", pins), "torch==2.11.0\ntriton==3.7.1\n")

    def test_the_newest_of_each_engine_comes_first(self) -> None:
        names = ["vllm-0.9.2", "vllm-0.32.0", "lmcache-0.5.6", "vllm-0.30.1"]
        self.assertEqual(run.newest_first(names), ["lmcache-0.5.6", "vllm-0.32.0", "vllm-0.30.1", "vllm-0.9.2"])

    def test_tests_that_did_not_end_are_one_failure(self) -> None:
        self.assertEqual(run.counts("test_a ... ok\n"), run.Outcome(0, 1, 0))
        self.assertEqual(run.counts("Ran 7 tests in 3s\n\nFAILED (failures=1, errors=1, skipped=2)\n"), run.Outcome(3, 2, 2))
        self.assertEqual(run.counts("Ran 7 tests in 3s\n\nOK\n"), run.Outcome(7, 0, 0))


if __name__ == "__main__":
    unittest.main()
