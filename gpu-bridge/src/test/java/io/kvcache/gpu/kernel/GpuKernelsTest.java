package io.kvcache.gpu.kernel;

import static io.kvcache.gpu.kernel.KernelFixture.bf16;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.within;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.kvcache.core.memory.ChunkedCrc;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceError;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.host.FakeDeviceDriver;
import java.lang.foreign.MemorySegment;
import java.util.List;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Each kernel on random inputs, in odd sizes, into memory that is poisoned; unchanged on a real device.
final class GpuKernelsTest {

    private KernelFixture rig;

    @SuppressWarnings("NullAway.Init") // opened before each test
    GpuKernelsTest() {}

    @BeforeEach
    void open() {
        rig = new KernelFixture();
    }

    @AfterEach
    void close() {
        rig.close();
    }

    @ParameterizedTest
    @CsvSource({"1,16", "5,48", "129,4096", "700,1040"})
    void givenPieces_whenCopied_thenEachWhereItBelongs(int count, int bytes) {
        MemorySegment content = rig.random((long) count * bytes, count);
        DeviceSpan data = rig.source(content);
        DeviceSpan moved = rig.target((long) count * bytes);
        MemorySegment from = rig.arena.allocate(8L * count, 8);
        MemorySegment to = rig.arena.allocate(8L * count, 8);
        for (int i = 0; i < count; i++) {
            from.setAtIndex(JAVA_LONG, i, data.address().value() + (long) i * bytes);
            to.setAtIndex(JAVA_LONG, i, moved.address().value() + (long) (count - 1 - i) * bytes);
        }
        rig.kernels.copyPieces(rig.stream, rig.source(from), rig.source(to), bytes, count);
        MemorySegment found = rig.read(moved);
        for (int i = 0; i < count; i++) {
            MemorySegment piece = found.asSlice((long) (count - 1 - i) * bytes, bytes);
            assertThat(piece.mismatch(content.asSlice((long) i * bytes, bytes))).isEqualTo(-1);
        }
    }

    @ParameterizedTest
    @CsvSource({"1,1,1,16", "3,5,2,48", "16,8,9,256", "7,13,40,16"})
    void givenPieces_whenLaidOutAnew_thenEachIsTransposedAndBackAgain(int rows, int columns, int count, int entry) {
        long piece = (long) rows * columns * entry;
        MemorySegment content = rig.random(piece * count, count);
        DeviceSpan data = rig.source(content);
        DeviceSpan turned = rig.target(piece * count);
        DeviceSpan back = rig.target(piece * count);
        DeviceSpan places = rig.addressList(turned, piece, count, true);
        rig.kernels.relayoutPieces(
                rig.stream, rig.addressList(data, piece, count, false), places, rows, columns, entry, count);
        rig.kernels.relayoutPieces(
                rig.stream, places, rig.addressList(back, piece, count, false), columns, rows, entry, count);
        MemorySegment found = rig.read(turned);
        for (long i = 0; i < (long) rows * columns * count; i++) {
            long within = i % ((long) rows * columns);
            long at = (count - 1 - i / ((long) rows * columns)) * rows * columns
                    + within % columns * rows
                    + within / columns;
            assertThat(found.asSlice(at * entry, entry).mismatch(content.asSlice(i * entry, entry)))
                    .isEqualTo(-1);
        }
        assertThat(rig.read(back).mismatch(content)).isEqualTo(-1);
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 255, 256, 257, 65_535, 65_536, 65_537, 200_001})
    void givenABlock_whenSummed_thenItIsTheChecksumOfTheStore(int bytes) {
        MemorySegment content = rig.random(bytes, bytes);
        DeviceSpan sums = rig.target(GpuKernels.crcSumBytes(bytes));
        rig.kernels.crc32c(rig.stream, rig.source(content), rig.target(GpuKernels.crcScratchBytes(bytes)), sums);
        assertThat(GpuKernels.blockChecksum(rig.read(sums))).isEqualTo(ChunkedCrc.of(content));
    }

    @ParameterizedTest
    @CsvSource({
        "1,64,32,true",
        "7,64,32,false",
        "13,96,32,true",
        "5,128,3,false",
        "300,128,64,true",
        "4,64,8,false",
        "3,66,32,true",
        "3,66,32,false"
    })
    void givenKeys_whenTurned_thenWithinHalfAStepOfFloat64(int rows, int row, int pairs, boolean halves) {
        MemorySegment keys = rig.values(rows * row, rows);
        MemorySegment turns = rig.arena.allocate(8L * pairs, 8);
        int delta = 1_234;
        GpuKernels.ropeAngles(delta, 10_000, turns);
        DeviceSpan span = rig.source(keys);
        rig.kernels.ropeShift(rig.stream, span, row, rig.source(turns), pairs, halves);
        MemorySegment turned = rig.read(span);
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

    /// One rounding to bf16, and what float32 loses when two numbers of that size nearly cancel.
    private static void requireNear(double found, double expected, double size) {
        assertThat(found).isCloseTo(expected, within(SmallFloatFormats.bf16Step(expected) / 2 + size * 0x1p-21));
    }

    @ParameterizedTest
    @CsvSource({"1,1", "1,8", "1,64", "3,24", "9,32", "77,128", "5,192", "33,256", "3,1000", "2,2048", "1000,7"})
    void givenValues_whenMadeFp8AndBack_thenEachIsTheNearest(int groups, int group) {
        MemorySegment values = rig.values(groups * group, groups);
        DeviceSpan scales = rig.target(4L * groups);
        DeviceSpan codes = rig.target((long) groups * group);
        DeviceSpan back = rig.target(2L * groups * group);
        rig.kernels.toFp8(rig.stream, rig.source(values), group, scales, codes);
        rig.kernels.fromFp8(rig.stream, codes, group, scales, back);
        MemorySegment scale = rig.read(scales);
        MemorySegment code = rig.read(codes);
        MemorySegment found = rig.read(back);
        for (int i = 0; i < groups * group; i++) {
            double by = scale.getAtIndex(JAVA_FLOAT, i / group);
            assertThat(by).isCloseTo(most(values, i / group, group) / 448, within(by * 0x1p-22));
            double wanted = bf16(values, i) / by;
            double coded = SmallFloatFormats.ofE4m3(code.get(JAVA_BYTE, i));
            assertThat(coded).isCloseTo(wanted, within(SmallFloatFormats.e4m3Step(wanted) / 2 * (1 + 0x1p-18)));
            assertThat(bf16(found, i))
                    .isCloseTo(coded * by, within(SmallFloatFormats.bf16Step(coded * by) / 2 * (1 + 0x1p-18)));
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
        MemorySegment codes = rig.arena.allocate(256, 8);
        for (int code = 0; code < 256; code++) {
            codes.set(JAVA_BYTE, code, (byte) code);
        }
        MemorySegment one = rig.arena.allocate(4, 8);
        one.set(JAVA_FLOAT, 0, 1);
        DeviceSpan values = rig.target(512);
        rig.kernels.fromFp8(rig.stream, rig.source(codes), 256, rig.source(one), values);
        MemorySegment found = rig.read(values);
        for (int code = 0; code < 256; code++) {
            Double expected = SmallFloatFormats.ofE4m3((byte) code);
            assertThat(bf16(found, code)).isEqualTo(expected);
        }
    }

    @Test
    void givenNumbersThatAreNone_whenMadeFp8_thenTheOthersOfTheirGroupDoNotSuffer() {
        MemorySegment values = rig.values(64, 1);
        values.setAtIndex(JAVA_SHORT, 3, SmallFloatFormats.toBf16(Double.NaN));
        values.setAtIndex(JAVA_SHORT, 5, SmallFloatFormats.toBf16(Double.NEGATIVE_INFINITY));
        values.setAtIndex(JAVA_SHORT, 9, (short) 0x8000);
        DeviceSpan scales = rig.target(4);
        DeviceSpan codes = rig.target(64);
        rig.kernels.toFp8(rig.stream, rig.source(values), 64, scales, codes);
        MemorySegment code = rig.read(codes);
        double by = rig.read(scales).get(JAVA_FLOAT, 0);
        assertThat(SmallFloatFormats.ofE4m3(code.get(JAVA_BYTE, 3))).isNaN();
        assertThat(SmallFloatFormats.ofE4m3(code.get(JAVA_BYTE, 5))).isEqualTo(-448);
        assertThat(code.get(JAVA_BYTE, 9)).as("minus zero").isEqualTo((byte) 0x80);
        double wanted = bf16(values, 0) / by;
        assertThat(SmallFloatFormats.ofE4m3(code.get(JAVA_BYTE, 0)))
                .isCloseTo(wanted, within(SmallFloatFormats.e4m3Step(wanted)));
    }

    /// As if there were many places to begin at, of which a device reads the even ones faster.
    @ParameterizedTest
    @CsvSource({"2,1", "16,8", "6,4"})
    void givenOddPlaces_whenMadeFp8AndBack_thenAsAtEvenOnes(int valuesAt, int codesAt) {
        int count = 3 * 64;
        MemorySegment values = rig.values(count, valuesAt);
        MemorySegment moved = rig.arena.allocate(2L * count + valuesAt, 8);
        MemorySegment.copy(values, 0, moved, valuesAt, 2L * count);
        DeviceSpan scales = rig.target(12);
        DeviceSpan codes = rig.target(count);
        DeviceSpan odd = rig.target((long) count + codesAt);
        DeviceSpan back = rig.target(2L * count);
        DeviceSpan oddBack = rig.target(2L * count + valuesAt);
        rig.kernels.toFp8(rig.stream, rig.source(values), 64, scales, codes);
        rig.kernels.fromFp8(rig.stream, codes, 64, scales, back);
        DeviceSpan from = rig.source(moved).slice(valuesAt, 2L * count);
        rig.kernels.toFp8(rig.stream, from, 64, rig.target(12), odd.slice(codesAt, count));
        rig.kernels.fromFp8(rig.stream, odd.slice(codesAt, count), 64, scales, oddBack.slice(valuesAt, 2L * count));
        assertThat(rig.read(odd).asSlice(codesAt).mismatch(rig.read(codes))).isEqualTo(-1);
        assertThat(rig.read(oddBack).asSlice(valuesAt).mismatch(rig.read(back))).isEqualTo(-1);
    }

    @Test
    void givenGroups_whenMadeFp8_thenEachValueIsReadOnceByOneKernel() {
        assumeThat(rig.fakeCuda.canHold()).as("a driver that counts its calls").isTrue();
        long before = rig.fakeCuda.calls("cuLaunchKernel");
        rig.kernels.toFp8(rig.stream, rig.source(rig.values(256, 1)), 128, rig.target(8), rig.target(256));
        assertThat(rig.fakeCuda.calls("cuLaunchKernel") - before).isEqualTo(1);
    }

    @Test
    void givenValuesTooSmallToDivideBy_whenMadeFp8_thenTheyAreNotLost() {
        MemorySegment values = rig.arena.allocate(128, 8);
        for (int i = 0; i < 64; i++) {
            values.setAtIndex(JAVA_SHORT, i, (short) i); // i times 2^-133
        }
        DeviceSpan scales = rig.target(4);
        DeviceSpan codes = rig.target(64);
        rig.kernels.toFp8(rig.stream, rig.source(values), 64, scales, codes);
        assertThat(rig.read(scales).get(JAVA_FLOAT, 0)).isEqualTo(0x1p-126f);
        MemorySegment code = rig.read(codes);
        for (int i = 0; i < 64; i++) {
            double wanted = i * 0x1p-7;
            assertThat(SmallFloatFormats.ofE4m3(code.get(JAVA_BYTE, i)))
                    .isCloseTo(wanted, within(SmallFloatFormats.e4m3Step(wanted) / 2));
        }
    }

    @Test
    void givenZeroes_whenMadeFp8_thenTheyStayAndTheScaleIsOne() {
        DeviceSpan scales = rig.target(4);
        DeviceSpan codes = rig.target(32);
        rig.kernels.toFp8(rig.stream, rig.source(rig.arena.allocate(64, 8)), 32, scales, codes);
        assertThat(rig.read(scales).get(JAVA_FLOAT, 0)).isEqualTo(1);
        assertThat(rig.read(codes).get(JAVA_INT, 0)).isZero();
    }

    @Test
    void givenSizesThatDoNotFit_whenCalled_thenRefusedBeforeAnythingRuns() {
        DeviceSpan small = rig.target(64);
        assertThatIllegalArgumentException().isThrownBy(() -> rig.kernels.copyPieces(rig.stream, small, small, 24, 1));
        assertThatIllegalArgumentException().isThrownBy(() -> rig.kernels.copyPieces(rig.stream, small, small, 16, 9));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> rig.kernels.crc32c(rig.stream, rig.target(1 << 20), small, small))
                .withMessageContaining("scratch");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> rig.kernels.ropeShift(rig.stream, small, 32, small, 17, true))
                .withMessageContaining("pairs 17");
        assertThatIllegalArgumentException().isThrownBy(() -> rig.kernels.toFp8(rig.stream, small, 5, small, small));
        assertThatIllegalArgumentException().isThrownBy(() -> GpuKernels.load(rig.driver, 0));
    }

    /// A device that reads a number where none of its size can begin is of no use any more.
    @Test
    void givenSpansThatBeginAtOddPlaces_whenCalled_thenRefusedBeforeAnythingRuns() {
        DeviceSpan even = rig.target(1024);
        DeviceSpan odd = even.slice(1, 512);
        DeviceSpan half = even.slice(2, 512);
        GpuKernels kernels = rig.kernels;
        assertRefused("keys begin", () -> kernels.ropeShift(rig.stream, odd, 32, even, 16, true));
        assertRefused("turns begin", () -> kernels.ropeShift(rig.stream, even, 32, half, 16, true));
        assertRefused("values begin", () -> kernels.toFp8(rig.stream, odd, 2, even, even));
        assertRefused("scales begin", () -> kernels.toFp8(rig.stream, even.slice(0, 64), 2, half, even));
        assertRefused("values begin", () -> kernels.fromFp8(rig.stream, even.slice(1, 64), 2, even, odd));
        assertRefused("scratch bytes begin", () -> kernels.crc32c(rig.stream, even, half, even));
        assertRefused("sums begin", () -> kernels.crc32c(rig.stream, even, even, half));
        kernels.fromFp8(rig.stream, even.slice(1, 64), 2, even.slice(512, 128), even.slice(640, 128));
    }

    private static void assertRefused(String why, ThrowingCallable call) {
        assertThatIllegalArgumentException().isThrownBy(call).withMessageContaining(why);
    }

    @Test
    void givenCodeThatTheDriverDoesNotTake_whenLoaded_thenItIsCalledThat() {
        for (String code : List.of("not code at all", GpuKernels.ptxSource().replace(".version 7.0", ".version 9.0"))) {
            if (rig.fakeCuda.canHold()) {
                assertThatExceptionOfType(DeviceException.class)
                        .isThrownBy(() -> rig.driver.load(code))
                        .satisfies(refused -> assertThat(refused.error()).isEqualTo(DeviceError.BAD_CODE));
            }
        }
    }

    @Test
    void givenADeviceThatRunsNoCode_whenKernelsAreLoaded_thenItSaysSo() {
        DeviceDriver none = FakeDeviceDriver.open(1 << 20);
        assertThatExceptionOfType(DeviceException.class)
                .isThrownBy(() -> GpuKernels.load(none, 1))
                .satisfies(refused -> assertThat(refused.error()).isEqualTo(DeviceError.NOT_SUPPORTED));
        none.close();
    }
}
