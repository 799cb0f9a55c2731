package io.kvcache.bench.server;

import java.time.Duration;
import java.util.List;

/// The parts there are.
public final class ServerParts {

    private static final List<ServerPart> ALL = List.of(
            new ValuesPart(),
            new ResponderPart(),
            new PipelinePart(),
            new ToolPart(),
            new EvictionPart(),
            new AllocationPart(),
            new StartPart());

    private ServerParts() {}

    /// All that take minutes.
    public static List<ServerPart> all() {
        return ALL;
    }

    /// The one that takes as long as it is told to.
    public static ServerPart soak(Duration time) {
        return new SoakPart(time);
    }
}
