package io.kvcache.transport.peer;

import java.time.Duration;

/// How an embedded store uses its peers.
///
/// @param replicas peers that keep each group of blocks, 1 to 8
/// @param replicate whether they are given what is new here
/// @param maxQueued groups that wait to be given, 1 to 65,536; what is more is not given
/// @param missTtl how long the store does not ask again for what no peer had, 1 ms to 10 minutes
/// @param fetches questions at a time, 1 to 64
/// @param maxBackoff for how long a peer that keeps failing is left alone at most, 1 ms to 10 minutes; the first
///     pauses are shorter
public record PeerOptions(
        int replicas, boolean replicate, int maxQueued, Duration missTtl, int fetches, Duration maxBackoff) {

    private static final Duration MIN_DURATION = Duration.ofMillis(1);
    private static final Duration MAX_DURATION = Duration.ofMinutes(10);

    public static final PeerOptions DEFAULTS =
            new PeerOptions(1, true, 1024, Duration.ofSeconds(1), 4, Duration.ofSeconds(10));

    public PeerOptions {
        check("replicas", replicas, 8);
        check("waiting", maxQueued, 1 << 16);
        check("fetches", fetches, 64);
        check("missTtl", missTtl);
        check("maxBackoff", maxBackoff);
    }

    private static void check(String name, Duration value) {
        if (value.compareTo(MIN_DURATION) < 0 || value.compareTo(MAX_DURATION) > 0) {
            throw new IllegalArgumentException(
                    "%s = %s is out of range; allowed: %s to %s".formatted(name, value, MIN_DURATION, MAX_DURATION));
        }
    }

    private static void check(String name, int value, int most) {
        if (value < 1 || value > most) {
            throw new IllegalArgumentException(
                    "%s = %s is out of range; allowed: 1 to %s".formatted(name, value, most));
        }
    }

    public PeerOptions withReplicas(int other) {
        return new PeerOptions(other, replicate, maxQueued, missTtl, fetches, maxBackoff);
    }

    public PeerOptions withReplicate(boolean other) {
        return new PeerOptions(replicas, other, maxQueued, missTtl, fetches, maxBackoff);
    }

    public PeerOptions withMissTtl(Duration other) {
        return new PeerOptions(replicas, replicate, maxQueued, other, fetches, maxBackoff);
    }

    public PeerOptions withMaxBackoff(Duration other) {
        return new PeerOptions(replicas, replicate, maxQueued, missTtl, fetches, other);
    }
}
