package io.kvcache.gpu.kernel;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.within;

import io.kvcache.core.contract.BlockContent;
import io.kvcache.core.store.ChunkedCrc;
import io.kvcache.gpu.cuda.StandIn;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceDriver.Priority;
import io.kvcache.gpu.driver.DeviceError;
import io.kvcache.gpu.driver.DeviceEvent;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.DeviceStream;
import io.kvcache.gpu.host.HostDriver;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Each kernel on random inputs, in odd sizes, into memory that is poisoned; unchanged on a real device.
final class KernelsTest {

    private static final byte POISON = (byte) 0xA7;
    private static final int MARGIN = 64;
    private static final long LONG_NANOS = TimeUnit.SECONDS.toNanos(30);

    private final StandIn standIn = StandIn.fresh();
    private final Arena arena = Arena.ofShared();
    private final List<DeviceSpan> slabs = new ArrayList<>();
    private DeviceDriver driver;
    private DeviceStream stream;
    private DeviceEvent event;
    private Kernels kernels;

    @SuppressWarnings("NullAway.Init") // opened before each test
    KernelsTest() {}

    @BeforeEach
    void open() {
        driver = standIn.open();
        stream = driver.openStream(Priority.NORMAL);
        event = driver.openEvent();
        kernels = Kernels.load(driver, 3);
    }

    @AfterEach
    void close() {
        kernels.close();
        stream.close();
        event.close();
        slabs.forEach(driver::free);
        driver.close();
        assertThat(standIn.left()).isEmpty();
        arena.close();
    }

    private void finish() {
        stream.record(event);
        assertThat(event.await(LONG_NANOS)).isTrue();
    }

    /// Poisoned memory with a margin behind it.
    private DeviceSpan target(long bytes) {
        DeviceSpan slab = driver.allocate(bytes + MARGIN);
        slabs.add(slab);
        stream.fill(slab, POISON);
        return slab.slice(0, bytes);
    }

    private DeviceSpan source(MemorySegment content) {
        DeviceSpan span = target(content.byteSize());
        stream.toDevice(content, span.address());
        return span;
    }

    /// What is there, after a look at the margin.
    private MemorySegment read(DeviceSpan span) {
        MemorySegment all = arena.allocate(span.bytes() + MARGIN, 8);
        stream.toHost(span.address(), all);
        finish();
        for (long at = span.bytes(); at < all.byteSize(); at++) {
            assertThat(all.get(JAVA_BYTE, at)).as("behind the end").isEqualTo(POISON);
        }
        return all.asSlice(0, span.bytes());
    }

    private MemorySegment random(long bytes, long seed) {
        MemorySegment memory = arena.allocate(bytes, 8);
        new BlockContent(seed).fill(memory);
        return memory;
    }

    /// Values of many magnitudes, and of both signs.
    private MemorySegment values(int count, long seed) {
        MemorySegment memory = arena.allocate(2L * count, 8);
        Random random = new Random(seed);
        for (int i = 0; i < count; i++) {
            double value = random.nextGaussian() * Math.scalb(1.0, random.nextInt(12) - 6);
            memory.setAtIndex(JAVA_SHORT, i, Floats.toBf16(value));
        }
        return memory;
    }

    @ParameterizedTest
    @CsvSource({"1,16", "5,48", "129,4096", "700,1040"})
    void givenPieces_whenCopied_thenEachWhereItBelongs(int count, int bytes) {
        MemorySegment content = random((long) count * bytes, count);
        DeviceSpan data = source(content);
        DeviceSpan moved = target((long) count * bytes);
        MemorySegment from = arena.allocate(8L * count, 8);
        MemorySegment to = arena.allocate(8L * count, 8);
        for (int i = 0; i < count; i++) {
            from.setAtIndex(JAVA_LONG, i, data.address().value() + (long) i * bytes);
            to.setAtIndex(JAVA_LONG, i, moved.address().value() + (long) (count - 1 - i) * bytes);
        }
        kernels.copyPieces(stream, source(from), source(to), bytes, count);
        MemorySegment found = read(moved);
        for (int i = 0; i < count; i++) {
            MemorySegment piece = found.asSlice((long) (count - 1 - i) * bytes, bytes);
            assertThat(piece.mismatch(content.asSlice((long) i * bytes, bytes))).isEqualTo(-1);
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 255, 256, 257, 65_535, 65_536, 65_537, 200_001})
    void givenABlock_whenSummed_thenItIsTheChecksumOfTheStore(int bytes) {
        MemorySegment content = random(bytes, bytes);
        DeviceSpan sums = target(Kernels.crcSumBytes(bytes));
        kernels.crc32c(stream, source(content), target(Kernels.crcScratchBytes(bytes)), sums);
        assertThat(Kernels.crcOfBlock(read(sums))).isEqualTo(ChunkedCrc.of(content));
    }

    @ParameterizedTest
    @CsvSource({"1,64,32,true", "7,64,32,false", "13,96,32,true", "5,128,3,false", "300,128,64,true"})
    void givenKeys_whenTurned_thenWithinHalfAStepOfFloat64(int rows, int row, int pairs, boolean halves) {
        MemorySegment keys = values(rows * row, rows);
        MemorySegment turns = arena.allocate(8L * pairs, 8);
        int delta = 1_234;
        RopeTurns.compute(delta, 10_000, turns);
        DeviceSpan span = source(keys);
        kernels.ropeShift(stream, span, row, source(turns), pairs, halves);
        MemorySegment turned = read(span);
        for (int r = 0; r < rows; r++) {
            for (int pair = 0; pair < pairs; pair++) {
                int first = r * row + (halves ? pair : 2 * pair);
                int second = first + (halves ? pairs : 1);
                double angle = delta * Math.pow(10_000, -(double) pair / pairs);
                double a = bf16(keys, first);
                double b = bf16(keys, second);
                requireNear(bf16(turned, first), a * Math.cos(angle) - b * Math.sin(angle), Math.hypot(a, b));
                requireNear(bf16(turned, second), b * Math.cos(angle) + a * Math.sin(angle), Math.hypot(a, b));
            }
            for (int i = r * row + 2 * pairs; i < (r + 1) * row; i++) {
                assertThat(turned.getAtIndex(JAVA_SHORT, i)).isEqualTo(keys.getAtIndex(JAVA_SHORT, i));
            }
        }
    }

    private static double bf16(MemorySegment memory, long index) {
        return Floats.ofBf16(memory.getAtIndex(JAVA_SHORT, index));
    }

    /// One rounding to bf16, and what float32 loses when two numbers of that size nearly cancel.
    private static void requireNear(double found, double expected, double size) {
        assertThat(found).isCloseTo(expected, within(Floats.bf16Step(expected) / 2 + size * 0x1p-21));
    }

    @ParameterizedTest
    @CsvSource({"1,1", "1,64", "9,32", "77,128", "1000,7"})
    void givenValues_whenMadeFp8AndBack_thenEachIsTheNearest(int groups, int group) {
        MemorySegment values = values(groups * group, groups);
        DeviceSpan scales = target(4L * groups);
        DeviceSpan codes = target((long) groups * group);
        DeviceSpan back = target(2L * groups * group);
        kernels.toFp8(stream, source(values), group, scales, codes);
        kernels.fromFp8(stream, codes, group, scales, back);
        MemorySegment scale = read(scales);
        MemorySegment code = read(codes);
        MemorySegment found = read(back);
        for (int i = 0; i < groups * group; i++) {
            double by = scale.getAtIndex(JAVA_FLOAT, i / group);
            assertThat(by).isCloseTo(most(values, i / group, group) / 448, within(by * 0x1p-22));
            double wanted = bf16(values, i) / by;
            double coded = Floats.ofE4m3(code.get(JAVA_BYTE, i));
            assertThat(coded).isCloseTo(wanted, within(Floats.e4m3Step(wanted) / 2 * (1 + 0x1p-18)));
            assertThat(bf16(found, i)).isCloseTo(coded * by, within(Floats.bf16Step(coded * by) / 2 * (1 + 0x1p-18)));
        }
    }

    private static double most(MemorySegment values, int index, int group) {
        double most = 0;
        for (int i = index * group; i < (index + 1) * group; i++) {
            most = Math.max(most, Math.abs(bf16(values, i)));
        }
        return most == 0 ? 448 : most;
    }

    @Test
    void givenEveryCodeOfFp8_whenMadeBf16_thenItIsWhatTheFormatSays() {
        MemorySegment codes = arena.allocate(256, 8);
        for (int code = 0; code < 256; code++) {
            codes.set(JAVA_BYTE, code, (byte) code);
        }
        MemorySegment one = arena.allocate(4, 8);
        one.set(JAVA_FLOAT, 0, 1);
        DeviceSpan values = target(512);
        kernels.fromFp8(stream, source(codes), 256, source(one), values);
        MemorySegment found = read(values);
        for (int code = 0; code < 256; code++) {
            Double expected = Floats.ofE4m3((byte) code);
            assertThat(bf16(found, code)).isEqualTo(expected);
        }
    }

    @Test
    void givenNumbersThatAreNone_whenMadeFp8_thenTheOthersOfTheirGroupDoNotSuffer() {
        MemorySegment values = values(64, 1);
        values.setAtIndex(JAVA_SHORT, 3, Floats.toBf16(Double.NaN));
        values.setAtIndex(JAVA_SHORT, 5, Floats.toBf16(Double.NEGATIVE_INFINITY));
        values.setAtIndex(JAVA_SHORT, 9, (short) 0x8000);
        DeviceSpan scales = target(4);
        DeviceSpan codes = target(64);
        kernels.toFp8(stream, source(values), 64, scales, codes);
        MemorySegment code = read(codes);
        double by = read(scales).get(JAVA_FLOAT, 0);
        assertThat(Floats.ofE4m3(code.get(JAVA_BYTE, 3))).isNaN();
        assertThat(Floats.ofE4m3(code.get(JAVA_BYTE, 5))).isEqualTo(-448);
        assertThat(code.get(JAVA_BYTE, 9)).as("minus zero").isEqualTo((byte) 0x80);
        double wanted = bf16(values, 0) / by;
        assertThat(Floats.ofE4m3(code.get(JAVA_BYTE, 0))).isCloseTo(wanted, within(Floats.e4m3Step(wanted)));
    }

    @Test
    void givenZeroes_whenMadeFp8_thenTheyStayAndTheScaleIsOne() {
        DeviceSpan scales = target(4);
        DeviceSpan codes = target(32);
        kernels.toFp8(stream, source(arena.allocate(64, 8)), 32, scales, codes);
        assertThat(read(scales).get(JAVA_FLOAT, 0)).isEqualTo(1);
        assertThat(read(codes).get(JAVA_INT, 0)).isZero();
    }

    @Test
    void givenSizesThatDoNotFit_whenCalled_thenRefusedBeforeAnythingRuns() {
        DeviceSpan small = target(64);
        assertThatIllegalArgumentException().isThrownBy(() -> kernels.copyPieces(stream, small, small, 24, 1));
        assertThatIllegalArgumentException().isThrownBy(() -> kernels.copyPieces(stream, small, small, 16, 9));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> kernels.crc32c(stream, target(1 << 20), small, small))
                .withMessageContaining("scratch");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> kernels.ropeShift(stream, small, 32, small, 17, true))
                .withMessageContaining("pairs 17");
        assertThatIllegalArgumentException().isThrownBy(() -> kernels.toFp8(stream, small, 5, small, small));
        assertThatIllegalArgumentException().isThrownBy(() -> Kernels.load(driver, 0));
    }

    @Test
    void givenCodeThatTheDriverDoesNotTake_whenLoaded_thenItIsCalledThat() {
        for (String code : List.of("not code at all", Kernels.code().replace(".version 7.0", ".version 9.0"))) {
            if (standIn.holds()) {
                assertThatExceptionOfType(DeviceException.class)
                        .isThrownBy(() -> driver.load(code))
                        .satisfies(refused -> assertThat(refused.error()).isEqualTo(DeviceError.BAD_CODE));
            }
        }
    }

    @Test
    void givenADeviceThatRunsNoCode_whenKernelsAreLoaded_thenItSaysSo() {
        DeviceDriver none = HostDriver.open(1 << 20);
        assertThatExceptionOfType(DeviceException.class)
                .isThrownBy(() -> Kernels.load(none, 1))
                .satisfies(refused -> assertThat(refused.error()).isEqualTo(DeviceError.NOT_SUPPORTED));
        none.close();
    }
}
