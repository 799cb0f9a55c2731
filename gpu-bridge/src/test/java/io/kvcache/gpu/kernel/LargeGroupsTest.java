package io.kvcache.gpu.kernel;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.kvcache.gpu.driver.DeviceSpan;
import java.lang.foreign.MemorySegment;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// Groups whose bits are no number of 32 bits, on a device with 4 GiB and up; the stand-in has that
/// with `-Dkvcache.gpu.bytes=4294967296`, and takes half a minute.
final class LargeGroupsTest {

    private static final long STAND_IN_BYTES = Long.getLong("kvcache.gpu.bytes", 256L << 20);
    private static final int GROUP = (1 << 29) + 8;
    private static final long NEEDED_BYTES = 7L * GROUP / 2;
    private static final byte LOW = 0x40;
    private static final byte HIGH = 0x3F;

    /// 448, the largest, which the larger values become.
    private static final byte LARGEST_CODE = 0x7E;

    private static final byte SMALL_CODE = 0x6E;

    private KernelRig rig;

    @SuppressWarnings("NullAway.Init") // opened before each test
    LargeGroupsTest() {}

    @BeforeEach
    void open() {
        rig = new KernelRig();
        if (rig.standIn.holds()) {
            rig.standIn.memory(STAND_IN_BYTES);
        }
    }

    @AfterEach
    void close() {
        rig.close();
        if (rig.standIn.holds()) {
            rig.standIn.memory(256L << 20);
        }
    }

    private MemorySegment at(DeviceSpan span, long offset, long bytes) {
        MemorySegment back = rig.arena.allocate(bytes, 8);
        rig.stream.toHost(span.address().plus(offset), back);
        rig.finish();
        return back;
    }

    /// Two pieces at one place: what the second one's codes are is known by the first one's.
    @Test
    void givenTwoGroups_whenCoded_thenTheSecondOnesCodesLieBehindTheFirstOnes() {
        Coding coding = Coding.FP8;
        assumeThat(rig.driver.freeBytes())
                .as("a device with %d bytes free", NEEDED_BYTES)
                .isGreaterThan(NEEDED_BYTES);
        CodedBlock block = new CodedBlock(coding, GROUP, GROUP, 2);
        DeviceSpan values = rig.target(2L * GROUP);
        rig.stream.fill(values, LOW);
        rig.stream.fill(values.slice(0, GROUP), HIGH);
        MemorySegment places = rig.arena.allocate(16, 8);
        places.setAtIndex(JAVA_LONG, 0, values.address().value());
        places.setAtIndex(JAVA_LONG, 1, values.address().value());
        DeviceSpan coded = rig.target(block.bytes());
        rig.kernels.coding().gather(rig.stream, rig.source(places), block, coded);
        long each = coding.codeBytes(GROUP);
        for (long start : new long[] {0, each}) {
            assertThat(at(coded, start, 1).get(JAVA_BYTE, 0)).as("of 0.75").isEqualTo(SMALL_CODE);
            assertThat(at(coded, start + each - 1, 1).get(JAVA_BYTE, 0))
                    .as("of 3")
                    .isEqualTo(LARGEST_CODE);
        }
        MemorySegment scales = at(block.scales(coded), 0, coding.scaleBytes(2));
        assertThat(scales.getAtIndex(JAVA_FLOAT, 1)).isEqualTo(scales.getAtIndex(JAVA_FLOAT, 0));
    }
}
