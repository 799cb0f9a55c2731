package io.kvcache.bench.server;

import io.kvcache.bench.suite.BenchResult;
import java.io.IOException;
import java.util.List;

/// A part of what `bench server` measures; it starts and stops the servers that it needs.
public interface ServerBenchmark {

    /// As on the command line.
    String name();

    /// What it answers, in one line.
    String title();

    /// Measures.
    ///
    /// @throws IOException when a server or a client fails, or a peer is not installed
    List<BenchResult> run(BenchmarkOptions benchmarkOptions) throws IOException, InterruptedException;
}
