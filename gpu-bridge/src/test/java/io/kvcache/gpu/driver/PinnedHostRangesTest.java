package io.kvcache.gpu.driver;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.junit.jupiter.api.Test;

/// What is registered is not registered again, and nothing else is refused.
final class PinnedHostRangesTest {

    private static final int PAGE = 4096;

    private final PinnedHostRanges ranges = new PinnedHostRanges();

    private void refused(MemorySegment host) {
        assertThatExceptionOfType(DeviceException.class)
                .isThrownBy(() -> ranges.add(host))
                .satisfies(refused -> assertThat(refused.error()).isEqualTo(DeviceError.ALREADY_REGISTERED));
    }

    @Test
    void givenMemoryOfARegistration_whenRegisteredAgain_thenItIsRefused() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment memory = arena.allocate(4 * PAGE, PAGE);
            ranges.add(memory.asSlice(PAGE + 100, 100));
            refused(memory.asSlice(PAGE + 199, PAGE));
            refused(memory.asSlice(0, PAGE + 101));
            refused(memory.asSlice(0, 4 * PAGE));
            refused(memory.asSlice(PAGE + 150, 10));
            assertThat(ranges.count()).isEqualTo(1);
        }
    }

    @Test
    void givenPartsOfOnePage_whenEachIsRegistered_thenThatIsForTheDriverToSay() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment memory = arena.allocate(4 * PAGE, PAGE);
            ranges.add(memory.asSlice(PAGE + 100, 100));
            ranges.add(memory.asSlice(PAGE + 200, PAGE));
            ranges.add(memory.asSlice(0, PAGE + 100));
            assertThat(ranges.count()).isEqualTo(3);
        }
    }

    @Test
    void givenRegistrationsBesideEachOtherAndAGap_whenAsked_thenMemoryUpToTheGapIsCovered() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment memory = arena.allocate(4 * PAGE, PAGE);
            ranges.add(memory.asSlice(PAGE, PAGE));
            ranges.add(memory.asSlice(2 * PAGE, 100));
            ranges.add(memory.asSlice(2 * PAGE + 101, 100));
            assertThat(ranges.covers(memory.asSlice(PAGE, PAGE + 100))).isTrue();
            assertThat(ranges.covers(memory.asSlice(PAGE + 1, 10))).isTrue();
            assertThat(ranges.covers(memory.asSlice(2 * PAGE, 100))).isTrue();
            assertThat(ranges.covers(memory.asSlice(2 * PAGE, 101))).isFalse();
            assertThat(ranges.covers(memory.asSlice(PAGE - 1, 2))).isFalse();
            assertThat(ranges.covers(memory.asSlice(0, 1))).isFalse();
            assertThat(ranges.covers(memory.asSlice(3 * PAGE, PAGE))).isFalse();
        }
    }
}
