package io.kvcache.bench.cli;

import io.kvcache.bench.gpu.GpuDemo;
import java.io.PrintWriter;
import java.util.Locale;
import tools.jackson.databind.json.JsonMapper;

/// Runs a store over the first GPU, and says what came of it.
///
/// @param json one JSON object instead of text
record GpuDemoReport(PrintWriter out, boolean json) {

    /// Answers what a process ends with: 0 when all came back.
    int run() {
        GpuDemo.Result result = GpuDemo.run();
        if (json) {
            out.println(JsonMapper.builder().build().writeValueAsString(result));
        } else {
            out.println(
                    result.noGpu().isEmpty()
                            ? "The GPU is " + result.device()
                            : "No GPU is used: " + result.noGpu() + "\nInstead: " + result.device());
            out.printf(
                    Locale.ROOT,
                    "%d blocks of 1 MiB were put through 64 MiB of host memory; %d lie on the device, where an engine"
                            + " could read them;%n%d came back with every byte: %s%n",
                    result.put(),
                    result.onDevice(),
                    result.back(),
                    result.passed() ? "passed" : "failed");
        }
        out.flush();
        return result.passed() ? 0 : 1;
    }
}
