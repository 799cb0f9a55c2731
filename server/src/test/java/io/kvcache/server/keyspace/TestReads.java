package io.kvcache.server.keyspace;

import io.kvcache.server.miss.MissLog.Reason;
import java.util.Arrays;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.Collectors;

/// What became of look-ups, to compare with.
public final class TestReads {

    private TestReads() {}

    /// @param missed by reason; 0 for the others
    public static KeyspaceStats.Reads of(long hits, Map<Reason, Long> missed) {
        return new KeyspaceStats.Reads(
                hits,
                Arrays.stream(Reason.values())
                        .collect(Collectors.toMap(Function.identity(), reason -> missed.getOrDefault(reason, 0L))));
    }
}
