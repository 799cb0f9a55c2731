package io.kvcache.gpu.kernel;

import static io.kvcache.gpu.kernel.KernelFixture.bf16;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.within;

import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.kernel.QuantizationKernels.QuantizationFormat;
import io.kvcache.gpu.kernel.QuantizationKernels.QuantizedBlock;
import io.kvcache.gpu.kernel.QuantizationKernels.RopeParameters;
import java.lang.foreign.MemorySegment;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/// Coding while gathering and decoding while scattering, against float64; unchanged on a real device.
final class QuantizationKernelsTest {

    private static final double ROUNDINGS = 1 + 0x1p-16;

    private KernelFixture rig;

    @SuppressWarnings("NullAway.Init") // opened before each test
    QuantizationKernelsTest() {}

    @BeforeEach
    void open() {
        rig = new KernelFixture();
    }

    @AfterEach
    void close() {
        rig.close();
    }

    /// Codes pieces that lie backwards, and reads the block.
    private MemorySegment coded(QuantizedBlock block, MemorySegment values, DeviceSpan into) {
        DeviceSpan pieces = rig.source(values);
        DeviceSpan from = rig.addressList(pieces, 2L * block.pieceValues(), block.pieces(), true);
        rig.kernels.quantization().gather(rig.stream, from, block, into);
        return rig.read(into);
    }

    /// The value that block value `i` was made of: pieces lie backwards.
    private static long lies(QuantizedBlock block, long i) {
        long piece = i / block.pieceValues();
        return (block.pieces() - 1 - piece) * block.pieceValues() + i % block.pieceValues();
    }

    /// What a code of the block stands for, in float64.
    private static double meant(QuantizedBlock block, MemorySegment bytes, long i) {
        long group = i / block.group();
        if (block.quantizationFormat() == QuantizationFormat.FP8) {
            return SmallFloatFormats.ofE4m3(bytes.get(JAVA_BYTE, i))
                    * bytes.get(JAVA_FLOAT, block.scalesOffset() + 4 * group);
        }
        int code = bytes.get(JAVA_BYTE, i / 2) >> (i % 2 * 4) & 15;
        double step = bytes.get(JAVA_FLOAT, block.scalesOffset() + 8 * group);
        return bytes.get(JAVA_FLOAT, block.scalesOffset() + 8 * group + 4) + code * step;
    }

    @ParameterizedTest
    @CsvSource({"2,2,1", "8,8,1", "24,72,3", "32,32,1", "64,192,7", "6,42,33", "128,2048,5", "512,1024,2"})
    void givenPieces_whenCodedByFourBits_thenEachValueIsTheNearestOfSixteen(int group, int pieceValues, int pieces) {
        QuantizedBlock block = new QuantizedBlock(QuantizationFormat.INT4, group, pieceValues, pieces);
        MemorySegment values = rig.values(pieceValues * pieces, group);
        MemorySegment bytes = coded(block, values, rig.target(block.bytes()));
        for (long first = 0; first < block.valueCount(); first += group) {
            double least = Double.MAX_VALUE;
            double most = -Double.MAX_VALUE;
            for (long i = first; i < first + group; i++) {
                least = Math.min(least, bf16(values, lies(block, i)));
                most = Math.max(most, bf16(values, lies(block, i)));
            }
            for (long i = first; i < first + group; i++) {
                double slack = (most - least) / 30 * ROUNDINGS + Math.abs(least) * 0x1p-22;
                assertThat(meant(block, bytes, i)).isCloseTo(bf16(values, lies(block, i)), within(slack));
            }
        }
    }

    @ParameterizedTest
    @CsvSource({"2,2,1", "64,192,7", "6,42,33", "24,72,3", "512,1024,2"})
    void givenPieces_whenCodedByEightBits_thenTheCodesAreThoseOfTheKernelThatDoesNotGather(
            int group, int pieceValues, int pieces) {
        QuantizedBlock block = new QuantizedBlock(QuantizationFormat.FP8, group, pieceValues, pieces);
        MemorySegment values = rig.values(pieceValues * pieces, group);
        MemorySegment bytes = coded(block, values, rig.target(block.bytes()));
        MemorySegment inOrder = rig.arena.allocate(2 * block.valueCount(), 8);
        for (long i = 0; i < block.valueCount(); i++) {
            inOrder.setAtIndex(JAVA_SHORT, i, values.getAtIndex(JAVA_SHORT, lies(block, i)));
        }
        DeviceSpan scales = rig.target(4 * block.valueCount() / group);
        DeviceSpan codes = rig.target(block.valueCount());
        rig.kernels.toFp8(rig.stream, rig.source(inOrder), group, scales, codes);
        assertThat(bytes.asSlice(0, block.valueCount()).mismatch(rig.read(codes)))
                .isEqualTo(-1);
        assertThat(bytes.asSlice(block.scalesOffset()).mismatch(rig.read(scales)))
                .isEqualTo(-1);
    }

    /// Pieces are `[side][run]`, as in a block: the keys turn and the values do not.
    @ParameterizedTest
    @CsvSource({
        "FP8,1,8,4,2,1,true", "INT4,1,8,4,2,1,true", "FP8,5,96,32,2,3,false", "INT4,5,96,32,2,3,true",
        "INT4,3,64,0,2,2,true", "FP8,3,64,0,1,1,true", "INT4,7,128,64,1,1,false", "FP8,2,130,7,2,4,false"
    })
    void givenCodes_whenScattered_thenWithinHalfAStepOfFloat64(
            QuantizationFormat quantizationFormat, int rows, int row, int pairs, int sides, int run, boolean halves) {
        int pieces = 2 * sides * run;
        QuantizedBlock block = new QuantizedBlock(quantizationFormat, 2, rows * row, pieces);
        DeviceSpan coded = rig.target(block.bytes());
        MemorySegment bytes = coded(block, rig.values(rows * row * pieces, row), coded);
        DeviceSpan back = rig.target(2 * block.valueCount());
        MemorySegment turns = rig.arena.allocate(Math.max(8L * pairs, 8), 8);
        GpuKernels.ropeAngles(-77, 10_000, turns);
        RopeParameters ropeParameters =
                pairs == 0 ? null : new RopeParameters(rig.source(turns), pairs, halves, sides, run);
        DeviceSpan to = rig.addressList(back, 2L * rows * row, pieces, true);
        rig.kernels.quantization().scatter(rig.stream, block, coded, to, row, ropeParameters);
        MemorySegment found = rig.read(back);
        for (long line = 0; line < (long) rows * pieces; line++) {
            boolean key = line / rows / run % sides == 0;
            for (int i = 0; i < row; i++) {
                double expected = expected(block, bytes, line * row, i, key ? pairs : 0, halves);
                double size = Math.abs(expected) + Math.abs(meant(block, bytes, line * row + i)) + 64;
                assertThat(bf16(found, lies(block, line * row + i)))
                        .as("line %d, value %d", line, i)
                        .isCloseTo(expected, within(SmallFloatFormats.bf16Step(expected) / 2 + size * 0x1p-20));
            }
        }
    }

    private static double expected(
            QuantizedBlock block, MemorySegment bytes, long start, int i, int pairs, boolean halves) {
        double value = meant(block, bytes, start + i);
        if (i >= 2 * pairs) {
            return value;
        }
        int pair = halves ? i % pairs : i / 2;
        boolean second = halves ? i >= pairs : i % 2 == 1;
        int other = halves ? (second ? i - pairs : i + pairs) : i ^ 1;
        double angle = -77 * Math.pow(10_000, -(double) pair / pairs);
        double with = meant(block, bytes, start + other);
        return value * Math.cos(angle) + (second ? with : -with) * Math.sin(angle);
    }

    @Test
    void givenNumbersThatAreNone_whenCodedByFourBits_thenTheOthersOfTheirGroupDoNotSuffer() {
        MemorySegment values = rig.arena.allocate(16, 8);
        double[] given = {-3, Double.NaN, Double.POSITIVE_INFINITY, 12, Double.NEGATIVE_INFINITY, 4, 0, 11};
        for (int i = 0; i < given.length; i++) {
            values.setAtIndex(JAVA_SHORT, i, SmallFloatFormats.toBf16(given[i]));
        }
        QuantizedBlock block = new QuantizedBlock(QuantizationFormat.INT4, 8, 8, 1);
        MemorySegment bytes = coded(block, values, rig.target(block.bytes()));
        double[] expected = {-3, -3, 12, 12, -3, 4, 0, 11};
        for (int i = 0; i < given.length; i++) {
            assertThat(meant(block, bytes, i)).isEqualTo(expected[i]);
        }
    }

    @ParameterizedTest
    @EnumSource(QuantizationFormat.class)
    void givenValuesThatAreAllTheSame_whenCoded_thenTheyComeBackAsTheyWere(QuantizationFormat quantizationFormat) {
        for (double same : new double[] {0, 448, -0x1.8p100}) {
            MemorySegment values = rig.arena.allocate(64, 8);
            for (int i = 0; i < 32; i++) {
                values.setAtIndex(JAVA_SHORT, i, SmallFloatFormats.toBf16(same));
            }
            QuantizedBlock block = new QuantizedBlock(quantizationFormat, 32, 32, 1);
            MemorySegment bytes = coded(block, values, rig.target(block.bytes()));
            assertThat(meant(block, bytes, 31)).isCloseTo(same, within(Math.abs(same) * 0x1p-20));
        }
    }

    @Test
    void givenSizesThatDoNotFit_whenCalled_thenRefusedBeforeAnythingRuns() {
        QuantizationKernels coding = rig.kernels.quantization();
        assertThatIllegalArgumentException().isThrownBy(() -> new QuantizedBlock(QuantizationFormat.INT4, 3, 6, 1));
        assertThatIllegalArgumentException().isThrownBy(() -> new QuantizedBlock(QuantizationFormat.INT4, 4, 6, 1));
        assertThatIllegalArgumentException().isThrownBy(() -> new QuantizedBlock(QuantizationFormat.FP8, 2, 2, 0));
        QuantizedBlock block = new QuantizedBlock(QuantizationFormat.FP8, 2, 8, 4);
        DeviceSpan small = rig.target(24);
        DeviceSpan whole = rig.target(block.bytes());
        assertThatIllegalArgumentException()
                .isThrownBy(() -> coding.gather(rig.stream, small, block, whole))
                .withMessageContaining("count 4");
        assertThatExceptionOfType(IndexOutOfBoundsException.class)
                .isThrownBy(() -> coding.gather(rig.stream, whole, block, small));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> coding.scatter(rig.stream, block, whole, whole, 3, null))
                .withMessageContaining("row 3");
        RopeParameters ropeParameters = new RopeParameters(whole, 3, true, 2, 1);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> coding.scatter(rig.stream, block, whole, whole, 4, ropeParameters))
                .withMessageContaining("pairs 3");
        assertThatIllegalArgumentException().isThrownBy(() -> new RopeParameters(small, 4, true, 2, 1));
    }

    @Test
    void givenABlockThatBeginsAtNoMultipleOf16_whenCalled_thenRefusedBeforeAnythingRuns() {
        QuantizationKernels coding = rig.kernels.quantization();
        QuantizedBlock block = new QuantizedBlock(QuantizationFormat.FP8, 2, 8, 4);
        DeviceSpan whole = rig.target(256);
        DeviceSpan eight = whole.slice(8, block.bytes());
        assertThatIllegalArgumentException()
                .isThrownBy(() -> coding.gather(rig.stream, whole, block, eight))
                .withMessageContaining("blocks begin")
                .withMessageContaining("multiples of 16");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> coding.scatter(rig.stream, block, eight, whole, 4, null))
                .withMessageContaining("blocks begin");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> coding.gather(rig.stream, whole.slice(4, 64), block, whole))
                .withMessageContaining("places begin");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new RopeParameters(whole.slice(2, 64), 4, true, 2, 1))
                .withMessageContaining("turns begin");
    }
}
