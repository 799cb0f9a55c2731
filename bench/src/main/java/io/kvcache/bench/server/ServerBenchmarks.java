package io.kvcache.bench.server;

import java.time.Duration;
import java.util.List;

/// The parts there are.
public final class ServerBenchmarks {

    private static final List<ServerBenchmark> ALL = List.of(
            new GetSetBenchmark(),
            new BaselineGetBenchmark(),
            new PipelineBenchmark(),
            new RedisToolBenchmark(),
            new EvictionPressureBenchmark(),
            new AllocationBenchmark(),
            new StartupBenchmark());

    private ServerBenchmarks() {}

    /// All that take minutes.
    public static List<ServerBenchmark> all() {
        return ALL;
    }

    /// The one that takes as long as it is told to.
    public static ServerBenchmark soak(Duration time) {
        return new SoakBenchmark(time);
    }
}
