package io.kvcache.server.config;

import io.kvcache.server.net.NetLimits;
import java.time.Duration;

/// All that can be set of a server.
///
/// @param drain how long a server that goes down waits for requests that have begun, and then for the disks
public record ServerConfig(
        ListenConfig listen,
        MemoryConfig memory,
        NetworkConfig network,
        NetLimits limits,
        PromiseConfig promise,
        DisksConfig disks,
        Duration drain) {

    private static final Duration LONGEST_DRAIN = Duration.ofMinutes(10);

    public ServerConfig {
        if (drain.isNegative() || drain.compareTo(LONGEST_DRAIN) > 0) {
            throw new IllegalArgumentException("shutdown.drain is " + drain.toSeconds() + "s; it takes 0s to 600s");
        }
    }

    /// What a server does when nothing is set.
    public static ServerConfig defaults(Machine machine) {
        return new ServerConfig(
                ListenConfig.defaults(),
                MemoryConfig.defaults(machine.memoryBytes()),
                NetworkConfig.defaults(machine.cores()),
                NetLimits.defaults(),
                PromiseConfig.defaults(),
                DisksConfig.defaults(),
                Duration.ofSeconds(25));
    }
}
