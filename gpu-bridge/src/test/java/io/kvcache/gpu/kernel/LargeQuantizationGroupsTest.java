package io.kvcache.gpu.kernel;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.VirtualMemory;
import io.kvcache.gpu.driver.VirtualMemory.PhysicalPages;
import io.kvcache.gpu.kernel.QuantizationKernels.QuantizationFormat;
import io.kvcache.gpu.kernel.QuantizationKernels.QuantizedBlock;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.function.LongFunction;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/// Groups whose bits are no number of 32 bits: of a gigabyte each, and as much of codes, by the
/// addresses. Behind them are six pages of 2 MiB, most of them in many places at once.
final class LargeQuantizationGroupsTest {

    private static final int GROUP = (1 << 29) + 8;
    private static final byte LOW = 0x40;
    private static final byte HIGH = 0x3F;

    /// 448, the largest, which the larger values become.
    private static final byte MAX_CODE = 0x7E;

    private static final byte SMALL_CODE = 0x6E;

    private final KernelFixture rig = new KernelFixture();
    private final VirtualMemory virtual = rig.driver.virtualMemory();
    private final long page = virtual.pageBytes();
    private final List<Runnable> giveBack = new ArrayList<>();

    @AfterEach
    void close() {
        giveBack.reversed().forEach(Runnable::run);
        rig.close();
    }

    private PhysicalPages page() {
        PhysicalPages one = virtual.create(page);
        giveBack.add(() -> virtual.release(one));
        return one;
    }

    /// Addresses, with a page behind each that may be behind others too.
    private DeviceSpan range(long bytes, LongFunction<PhysicalPages> pages) {
        long count = Math.ceilDiv(bytes, page);
        DeviceSpan range = virtual.reserve(count * page);
        giveBack.add(() -> virtual.unreserve(range));
        for (long i = 0; i < count; i++) {
            PhysicalPages behind = pages.apply(i);
            DeviceSpan here = range.slice(i * page, page);
            virtual.map(here.address(), behind);
            giveBack.add(() -> virtual.unmap(here.address(), behind));
        }
        return range;
    }

    private void fill(DeviceSpan range, long index, byte value) {
        rig.stream.fill(range.slice(index * page, page), value);
    }

    private MemorySegment at(DeviceSpan span, long offset, long bytes) {
        MemorySegment back = rig.arena.allocate(bytes, 8);
        rig.stream.copyToHost(span.address().plus(offset), back);
        rig.finish();
        return back;
    }

    /// Two pieces at one place: what the second one's codes are is known by the first one's. Codes
    /// that are looked at have a page of their own, and all others one together.
    @Test
    @Tag("nightly")
    void givenTwoGroups_whenCoded_thenTheSecondOnesCodesLieBehindTheFirstOnes() {
        QuantizationFormat quantizationFormat = QuantizationFormat.FP8;
        QuantizedBlock block = new QuantizedBlock(quantizationFormat, GROUP, GROUP, 2);
        long each = quantizationFormat.codeBytes(GROUP);
        long half = GROUP / page; // bytes of a half are as many as values of the whole
        PhysicalPages small = page();
        PhysicalPages large = page();
        DeviceSpan values = range(2L * GROUP, i -> i < half ? small : large);
        fill(values, 0, HIGH);
        fill(values, half, LOW);
        PhysicalPages first = page();
        PhysicalPages border = page();
        PhysicalPages last = page();
        PhysicalPages others = page();
        long end = (block.bytes() - 1) / page;
        DeviceSpan coded =
                range(block.bytes(), i -> i == 0 ? first : i == each / page ? border : i == end ? last : others);
        for (long index : new long[] {0, each / page, end}) {
            fill(coded, index, KernelFixture.POISON);
        }
        MemorySegment places = rig.arena.allocate(16, 8);
        places.setAtIndex(JAVA_LONG, 0, values.address().value());
        places.setAtIndex(JAVA_LONG, 1, values.address().value());
        DeviceSpan codes = coded.slice(0, block.bytes());
        rig.kernels.quantization().gather(rig.stream, rig.source(places), block, codes);
        for (long start : new long[] {0, each}) {
            assertThat(at(codes, start, 1).get(JAVA_BYTE, 0)).as("of 0.75").isEqualTo(SMALL_CODE);
            assertThat(at(codes, start + each - 1, 1).get(JAVA_BYTE, 0))
                    .as("of 3")
                    .isEqualTo(MAX_CODE);
        }
        assertThat(end).as("the page that the last codes are in").isEqualTo((2 * each - 1) / page);
        MemorySegment scales = at(block.scales(codes), 0, quantizationFormat.scaleBytes(2));
        assertThat(scales.getAtIndex(JAVA_FLOAT, 1)).isEqualTo(scales.getAtIndex(JAVA_FLOAT, 0));
    }
}
