package io.kvcache.gpu.driver;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.junit.jupiter.api.Test;

/// Memory is registered by whole pages, each once: a real driver refuses the second time.
final class HostRangesTest {

    private static final int PAGE = 4096;

    private final HostRanges ranges = new HostRanges();

    private void refused(MemorySegment host) {
        assertThatExceptionOfType(DeviceException.class)
                .isThrownBy(() -> ranges.add(host))
                .satisfies(refused -> assertThat(refused.error()).isEqualTo(DeviceError.ALREADY_REGISTERED));
    }

    @Test
    void givenTwoPartsOfAPage_whenBothAreRegistered_thenTheSecondIsRefused() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment memory = arena.allocate(4 * PAGE, PAGE);
            ranges.add(memory.asSlice(PAGE + 100, 100));
            refused(memory.asSlice(PAGE + 200, PAGE));
            refused(memory.asSlice(0, PAGE + 1));
            refused(memory.asSlice(0, 4 * PAGE));
            refused(memory.asSlice(PAGE + 150, 10));
            ranges.add(memory.asSlice(0, PAGE));
            ranges.add(memory.asSlice(2 * PAGE, PAGE + 1));
            refused(memory.asSlice(3 * PAGE + 1));
            assertThat(ranges.count()).isEqualTo(3);
        }
    }
}
