package io.kvcache.transport.peer;

import java.time.Duration;

/// How an embedded store uses its peers.
///
/// @param replicas peers that keep each group of 64 blocks, 1 to 8
/// @param give whether they are given what is new here
/// @param waiting groups that wait to be given, 1 to 65,536; what is more is not given
/// @param missLasts for how long nobody asks again for what no peer had, 1 ms to 10 minutes
/// @param fetches questions at a time, 1 to 64
/// @param longestPause for how long a peer that keeps failing is left alone at most, 1 ms to 10 minutes; the first
///     pauses are shorter
public record PeerOptions(
        int replicas, boolean give, int waiting, Duration missLasts, int fetches, Duration longestPause) {

    private static final Duration SHORTEST = Duration.ofMillis(1);
    private static final Duration LONGEST = Duration.ofMinutes(10);

    public static final PeerOptions DEFAULTS =
            new PeerOptions(1, true, 1024, Duration.ofSeconds(1), 4, Duration.ofSeconds(10));

    public PeerOptions {
        check("replicas", replicas, 8);
        check("waiting", waiting, 1 << 16);
        check("fetches", fetches, 64);
        check("missLasts", missLasts);
        check("longestPause", longestPause);
    }

    private static void check(String name, Duration value) {
        if (value.compareTo(SHORTEST) < 0 || value.compareTo(LONGEST) > 0) {
            throw new IllegalArgumentException(
                    "%s = %s is out of range; allowed: %s to %s".formatted(name, value, SHORTEST, LONGEST));
        }
    }

    private static void check(String name, int value, int most) {
        if (value < 1 || value > most) {
            throw new IllegalArgumentException(
                    "%s = %d is out of range; allowed: 1 to %d".formatted(name, value, most));
        }
    }

    public PeerOptions withReplicas(int other) {
        return new PeerOptions(other, give, waiting, missLasts, fetches, longestPause);
    }

    public PeerOptions withGive(boolean other) {
        return new PeerOptions(replicas, other, waiting, missLasts, fetches, longestPause);
    }

    public PeerOptions withMissLasts(Duration other) {
        return new PeerOptions(replicas, give, waiting, other, fetches, longestPause);
    }

    public PeerOptions withLongestPause(Duration other) {
        return new PeerOptions(replicas, give, waiting, missLasts, fetches, other);
    }
}
