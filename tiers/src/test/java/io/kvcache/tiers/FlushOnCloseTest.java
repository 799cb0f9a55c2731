package io.kvcache.tiers;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.kvcache.core.KvCache;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Collections;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Blocks that a restart finds of 100 that were put once, and never flushed by the caller.
final class FlushOnCloseTest {

    private static final Namespace SPACE = Namespace.of("m", BlockShape.kv(2, 8, 128, 16, Dtype.BF16)); // 128 KiB
    private static final int BLOCKS = 100;
    private static final BlockChain CHAIN =
            BlockChain.of(SPACE, IntStream.range(0, BLOCKS * 16).toArray());
    private static final Duration LONG = Duration.ofSeconds(60);

    @TempDir
    private Path folder;

    private TieredKvCacheBuilder builder() {
        return TieredKvCache.builder()
                .hostBytes(64L << 20)
                .prefaultInBackground(false)
                .failOnLeak(true)
                .clock(new SlowClock())
                .disk(folder.resolve("disk"), 600L << 20);
    }

    private int foundAfterClosing(TieredKvCacheBuilder builder) {
        try (TieredKvCache cache = builder.build()) {
            cache.register(SPACE);
            MemorySegment block = MemorySegment.ofArray(new byte[128 << 10]);
            assertThat(cache.putAll(CHAIN, 0, Collections.nCopies(BLOCKS, block), KvCache.NO_WAIT)
                            .stored())
                    .isEqualTo(BLOCKS);
        }
        try (TieredKvCache cache = builder().build()) {
            cache.register(SPACE);
            assertThat(cache.awaitRecovered(LONG)).isTrue();
            return cache.match(CHAIN).blocks();
        }
    }

    @Test
    void givenDefaults_whenClosedWithoutAFlush_thenARestartFindsAllBlocks() {
        assertThat(foundAfterClosing(builder())).isEqualTo(BLOCKS);
    }

    @Test
    void givenNoFlushOnClose_whenClosed_thenARestartFindsWhatTheAdmissionChose() {
        assertThat(foundAfterClosing(builder().flushOnClose(Duration.ZERO))).isZero();
    }

    @Test
    void givenATimeOutOfRange_whenSet_thenTheErrorNamesValueAndRange() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> TieredKvCache.builder().flushOnClose(Duration.ofSeconds(-1)))
                .withMessage("flushOnClose is PT-1S; it takes 0 to 24 hours");
    }

    @Test
    void givenNoDisk_whenRecoveryIsAwaited_thenItIsOverAtOnce() {
        try (TieredKvCache cache = TieredKvCache.builder()
                .hostBytes(64L << 20)
                .prefaultInBackground(false)
                .build()) {
            assertThat(cache.awaitRecovered(Duration.ZERO)).isTrue();
        }
    }
}
