package io.kvcache.transport.peer;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.identity.BlockKey;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// How many copies follow from what a client reads.
final class GroupHeatTest {

    private static final BlockKey HOT = new BlockKey(1, 2);
    private static final BlockKey COLD = new BlockKey(3, 4);
    private static final long START = -7_000_000_000L; // the clock's numbers mean nothing

    private final GroupHeat heat = new GroupHeat(32);

    private void read(BlockKey group, int times, long bytes, long nanos) {
        IntStream.range(0, times).forEach(_ -> heat.onRead(group, bytes, nanos));
    }

    @ParameterizedTest
    @CsvSource({
        // bytes of 100, servers, copies
        "5, 5, 1",
        "10, 5, 1",
        "11, 5, 2",
        "20, 5, 2",
        "21, 5, 3",
        "50, 5, 5",
        "100, 5, 5",
        "100, 64, 8",
        "1, 64, 2",
        "100, 1, 1",
        "6, 16, 2",
        "10, 16, 4"
    })
    void givenAShareOfTheReads_whenAsked_thenEachCopyServesHalfAFairShare(int share, int servers, int copies) {
        read(HOT, 40, share, START);
        read(COLD, 40, 100 - share, START);
        assertThat(heat.copies(HOT, servers, START)).isEqualTo(copies);
    }

    @Test
    void givenFewReads_whenAsked_thenThereIsOneCopy() {
        read(HOT, 31, 1 << 20, START);
        assertThat(heat.copies(HOT, 5, START)).isEqualTo(1);
        read(HOT, 1, 1 << 20, START);
        assertThat(heat.copies(HOT, 5, START)).isEqualTo(5);
        assertThat(heat.copies(COLD, 5, START)).isEqualTo(1);
    }

    @Test
    void givenAGroupThatIsReadNoMore_whenTimePasses_thenItsCopiesEnd() {
        read(HOT, 40, 100, START);
        long later = START + TimeUnit.SECONDS.toNanos(31);
        assertThat(heat.copies(HOT, 5, later)).as("20 reads lately").isEqualTo(1);
        read(HOT, 12, 100, later);
        assertThat(heat.copies(HOT, 5, later)).isEqualTo(5);
        assertThat(heat.copies(HOT, 5, later + TimeUnit.HOURS.toNanos(2))).isEqualTo(1);
    }
}
