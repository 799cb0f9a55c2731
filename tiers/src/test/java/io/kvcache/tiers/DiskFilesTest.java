package io.kvcache.tiers;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.kvcache.core.contract.Pause;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.stats.TierTransferStats;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.core.tier.TierState;
import io.kvcache.tiers.directory.DiskDirectoryException;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// What others do to the files of a store's disks, and directories that hinder each other.
final class DiskFilesTest {

    private static final Namespace THINGS = Namespace.objects("things", "");
    private static final Duration A_MINUTE = Duration.ofMinutes(1);
    private static final long BYTES = 16 << 20;

    @TempDir
    private Path folder;

    private TieredKvCache open(Path... disks) {
        TieredKvCacheBuilder builder =
                TieredKvCache.builder().hostBytes(64 << 20).admission(AdmissionKind.ALWAYS);
        for (Path disk : disks) {
            builder.disk(disk, BYTES);
        }
        TieredKvCache cache = builder.build();
        cache.register(THINGS);
        return cache;
    }

    private static void put(TieredKvCache cache, int key) {
        MemorySegment value = MemorySegment.ofArray(new byte[5000]);
        assertThat(cache.storeObject(THINGS, new byte[] {(byte) key}, value, A_MINUTE))
                .isTrue();
    }

    private static TierTransferStats disk(TieredKvCache cache) {
        return cache.diskStats().getFirst();
    }

    private static void awaitState(TieredKvCache cache, TierState state) {
        while (disk(cache).state() != state) {
            Pause.briefly();
        }
    }

    @Test
    void givenAFileThatWasRemoved_whenFlushed_thenItIsNotDurableUntilTheDiskIsOpenedAgain() throws IOException {
        Path tier = folder.resolve("disk/tier");
        try (TieredKvCache cache = open(tier.getParent())) {
            put(cache, 1);
            assertThat(cache.flush(A_MINUTE)).isTrue();
            Files.delete(tier);
            put(cache, 2);
            assertThat(cache.flush(A_MINUTE)).isFalse();
            awaitState(cache, TierState.READ_ONLY);
            assertThat(disk(cache).problem())
                    .startsWith("disk " + tier.getParent() + " is read only: ")
                    .contains(tier + " was removed");
            cache.reopenDisk(0);
            awaitState(cache, TierState.SERVING);
            assertThat(cache.flush(A_MINUTE)).isTrue();
            assertThat(tier).hasSize(BYTES);
        }
    }

    @Test
    void givenAFileThatWasCut_whenNothingIsWritten_thenTheDiskSaysSo() throws IOException {
        Path tier = folder.resolve("disk/tier");
        try (TieredKvCache cache = open(tier.getParent())) {
            awaitState(cache, TierState.SERVING);
            try (FileChannel file = FileChannel.open(tier, StandardOpenOption.WRITE)) {
                file.truncate(1 << 20);
            }
            awaitState(cache, TierState.READ_ONLY);
            assertThat(disk(cache).problem()).contains("has 1048576 bytes and must have 16777216; it was cut");
            assertThat(cache.flush(A_MINUTE)).isFalse();
        }
    }

    @Test
    void givenADiskInAnothersDirectory_whenOpened_thenRefusedBothWaysRoundAndNothingIsMade() {
        Path outer = folder.resolve("outer");
        Path inner = outer.resolve("inner");
        for (Path[] disks : new Path[][] {{outer, inner}, {inner, outer}}) {
            assertThatExceptionOfType(DiskDirectoryException.class)
                    .isThrownBy(() -> open(disks))
                    .withMessageContainingAll(inner.toString(), "it lies in " + outer);
            assertThat(outer).doesNotExist();
        }
    }
}
