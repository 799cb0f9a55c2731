package io.kvcache.tiers;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.ObjectView;
import io.kvcache.core.ObjectWriter;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.contract.Pause;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.tier.AdmissionKind;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/// Objects that are prefetched from a disk.
@Timeout(120)
@Tag("slow")
final class PrefetcherTest {

    private static final Namespace THINGS = Namespace.objects("things", "t");
    private static final long PATIENCE = TimeUnit.SECONDS.toNanos(60);
    private static final long MIB = 1L << 20;
    private static final int OBJECTS = 120;

    @TempDir
    private Path folder;

    /// A store of 64 objects, over a disk that has all of them.
    private TieredKvCache filled(boolean prefetch) {
        TieredKvCache cache = TieredKvCache.builder()
                .hostBytes(64 * MIB)
                .prefaultInBackground(false)
                .failOnLeak(true)
                .admission(AdmissionKind.ALWAYS)
                .disk(folder.resolve("disk"), 600 * MIB)
                .prefetch(prefetch)
                .build();
        cache.register(THINGS);
        for (int number = 0; number < OBJECTS; number++) {
            try (ObjectWriter writer =
                    cache.putObject(THINGS, key(number), content(number).length, Duration.ofNanos(PATIENCE))) {
                assertThat(writer.outcome()).isEqualTo(PutOutcome.RESERVED);
                writer.copyFrom(MemorySegment.ofArray(content(number)));
                writer.seal();
            }
            assertThat(number % 20 != 0 || cache.flush(Duration.ofNanos(PATIENCE)))
                    .isTrue();
        }
        assertThat(cache.flush(Duration.ofNanos(PATIENCE))).isTrue();
        return cache;
    }

    private static byte[] key(int number) {
        return new byte[] {(byte) number};
    }

    private static byte[] content(int number) {
        byte[] content = new byte[(1 << 20) - 100];
        Arrays.fill(content, (byte) number);
        return content;
    }

    private static boolean isHere(TieredKvCache cache, int number) {
        try (ObjectView view = cache.getObject(THINGS, key(number))) {
            return view != null;
        }
    }

    private static int away(TieredKvCache cache) {
        return IntStream.range(0, OBJECTS)
                .filter(number -> !isHere(cache, number) && cache.containsObject(THINGS, key(number)))
                .findFirst()
                .orElseThrow();
    }

    private static void awaitLoads(TieredKvCache cache, long loads) {
        long end = System.nanoTime() + PATIENCE;
        while (cache.diskStats().getFirst().loaded() < loads && System.nanoTime() < end) {
            Pause.briefly();
        }
        assertThat(cache.diskStats().getFirst().loaded()).isGreaterThanOrEqualTo(loads);
    }

    @Test
    void givenAnObjectOnDisk_whenExpectedAndReadLater_thenItIsInMemoryWithItsBytes() {
        try (TieredKvCache cache = filled(true)) {
            int number = away(cache);
            long loads = cache.diskStats().getFirst().loaded();
            assertThat(cache.prefetchObject(THINGS, key(number))).isTrue();
            awaitLoads(cache, loads + 1);
            try (ObjectView view = cache.getObject(THINGS, key(number), Duration.ofNanos(PATIENCE))) {
                assertThat(view).isNotNull();
                MemorySegment bytes = MemorySegment.ofArray(new byte[(int) view.bytes()]);
                view.copyTo(0, view.bytes(), bytes);
                assertThat(bytes.toArray(ValueLayout.JAVA_BYTE)).isEqualTo(content(number));
            }
            assertThat(cache.diskStats().getFirst().loaded()).isEqualTo(loads + 1);
            assertThat(cache.prefetchStats().begun()).isEqualTo(1);
            cache.validate();
        }
    }

    @Test
    void givenOneThatComes_whenAskedForAtOnce_thenItIsReadOnce() {
        try (TieredKvCache cache = filled(true)) {
            int number = away(cache);
            long loads = cache.diskStats().getFirst().loaded();
            assertThat(cache.prefetchObject(THINGS, key(number))).isTrue();
            try (ObjectView view = cache.getObject(THINGS, key(number), Duration.ofNanos(PATIENCE))) {
                assertThat(view).isNotNull();
            }
            assertThat(cache.diskStats().getFirst().loaded()).isEqualTo(loads + 1);
            cache.validate();
        }
    }

    @Test
    void givenOneThatIsHereOrUnknown_whenExpected_thenNothingComes() {
        try (TieredKvCache cache = filled(true)) {
            assertThat(cache.prefetchObject(THINGS, key(OBJECTS - 1))).isFalse();
            assertThat(cache.prefetchObject(THINGS, new byte[] {1, 2, 3})).isFalse();
            assertThat(cache.prefetchStats().begun()).isZero();
        }
    }

    @Test
    void givenAStoreThatWasNotToldTo_whenExpected_thenNothingComes() {
        try (TieredKvCache cache = filled(false)) {
            assertThat(cache.prefetchObject(THINGS, key(away(cache)))).isFalse();
            assertThat(cache.prefetchStats().begun()).isZero();
        }
    }
}
