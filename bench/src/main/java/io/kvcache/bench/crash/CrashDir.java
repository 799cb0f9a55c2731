package io.kvcache.bench.crash;

import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.tiers.directory.DirectoryOptions;
import io.kvcache.tiers.directory.DiskDirectory;
import io.kvcache.tiers.disk.LogAudit;
import java.nio.file.Path;

/// The directory of a tier in which processes are killed.
///
/// @param bytes of the tier
record CrashDir(Path directory, long bytes) {

    /// Takes in all that the rounds between two clearings write, so that nothing of it is evicted.
    static final long ROOMY_BYTES = 256L << 20;

    /// Reclaims regions within a round.
    static final long TIGHT_BYTES = 8L << 20;

    /// Two slabs for each of the four classes of slots, so that no class takes one from another.
    private static final long HOST_BYTES = 256L << 20;

    static CrashDir of(String directory, long bytes) {
        return new CrashDir(Path.of(directory), bytes);
    }

    /// Opens a store there.
    TieredKvCache open() {
        TieredKvCache cache = TieredKvCache.builder()
                .hostBytes(HOST_BYTES)
                .prefaultInBackground(false)
                .failOnLeak(true)
                .admission(AdmissionKind.ALWAYS)
                .disk(directory, bytes)
                .build();
        cache.register(TestContent.BLOCKS);
        cache.register(TestContent.OBJECTS);
        return cache;
    }

    /// Blocks and objects whose bytes are bad, as `fsck` finds them.
    long countCorrupt() {
        try (DiskDirectory opened = DiskDirectory.openExisting(directory, DirectoryOptions.defaults())) {
            return LogAudit.run(opened.device(), LogAudit.Scope.BLOCKS, (_, _) -> {})
                    .corruptEntries();
        }
    }

    /// Whether all that was flushed has to be there.
    boolean isRoomy() {
        return bytes >= ROOMY_BYTES;
    }
}
