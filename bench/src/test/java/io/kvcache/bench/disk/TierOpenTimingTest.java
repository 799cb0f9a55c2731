package io.kvcache.bench.disk;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Path;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

@EnabledOnOs(OS.LINUX)
@Tag("slow")
final class TierOpenTimingTest {

    @TempDir
    private Path folder;

    @Test
    void givenASparseTier_whenReopened_thenItsBlocksAreToldAndItsFileIsGone() throws IOException {
        TierOpenTiming tierOpenTiming = TierOpenTiming.measure(folder, 4L << 30, 64 << 10);
        assertThat(tierOpenTiming.entries()).isBetween(62_000L, 65_536L);
        assertThat(tierOpenTiming.fullSeconds()).isGreaterThanOrEqualTo(tierOpenTiming.servingSeconds());
        assertThat(folder).isEmptyDirectory();
    }

    @Test
    void givenASparseTier_whenAStoreOpensIt_thenItsTreeHasAllBlocksButThoseOfTheLastRegionAndChain()
            throws IOException {
        TierOpenTiming tierOpenTiming = TierOpenTiming.measureTree(folder, 1L << 30, 64 << 10);
        assertThat(tierOpenTiming.entries()).isBetween(15_000L, 16_384L);
        assertThat(tierOpenTiming.nanosPerEntry()).isPositive();
        assertThat(folder).isEmptyDirectory();
    }
}
