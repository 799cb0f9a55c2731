package io.kvcache.planner.replay;

import io.kvcache.core.policy.EvictionPolicies;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/// Everything a trace can be replayed against, by its command-line name.
public final class ReplayCatalogue {

    private static final List<SimulatedCache> ALL = Stream.<SimulatedCache>concat(
                    EvictionPolicies.all().stream().map(PolicyReplay::new),
                    Stream.of(
                            new CaffeineReplay(),
                            new VllmQueueReplay(),
                            new MooncakeReplay(),
                            new CostAwareReplay(),
                            new PgdsfReplay(),
                            new MarconiReplay(),
                            new PensieveReplay(),
                            new BeladyReplay(false),
                            new BeladyReplay(true)))
            .toList();

    private ReplayCatalogue() {}

    /// All of them: the store's policies first, then what others have, then the bounds.
    public static List<SimulatedCache> all() {
        return ALL;
    }

    /// The one with this name, if any.
    public static Optional<SimulatedCache> named(String name) {
        return ALL.stream().filter(replay -> replay.commandName().equals(name)).findFirst();
    }

    /// All names, for messages.
    public static String names() {
        return ALL.stream().map(SimulatedCache::commandName).collect(Collectors.joining(", "));
    }
}
