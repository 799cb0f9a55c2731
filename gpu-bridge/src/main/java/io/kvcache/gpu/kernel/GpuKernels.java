package io.kvcache.gpu.kernel;

import static io.kvcache.gpu.kernel.GpuKernels.KernelLauncher.require;
import static io.kvcache.gpu.kernel.GpuKernels.KernelLauncher.requireAddressList;
import static io.kvcache.gpu.kernel.GpuKernels.KernelLauncher.requireAligned;

import io.kvcache.gpu.driver.DeviceAddress;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.driver.DeviceProgram;
import io.kvcache.gpu.driver.DeviceProgram.DeviceKernel;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.DeviceStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.Locale;
import java.util.Objects;
import java.util.zip.CRC32C;

/// The kernels, loaded on one device. Every call queues work on a stream and returns.
///
/// **Ownership.** Memory that is given stays the caller's and must stay until an event behind the work is
/// reached.
///
/// **Threads.** The driver's.
public final class GpuKernels implements AutoCloseable {

    /// Bytes that one thread sums up.
    static final int CRC_RUN_BYTES = 256;

    /// As [io.kvcache.core.memory.ChunkedCrc] cuts a block.
    static final int CRC_CHUNK_BYTES = 64 << 10;

    /// Unit of [#copyPieces].
    static final int UNIT_BYTES = 16;

    /// Units that a thread of [#copyPieces] reads before it writes.
    private static final int UNITS_AT_ONCE = 4;

    /// Units of [#copyPieces], fewer than this.
    private static final long MAX_UNITS = 1L << 31;

    private final DeviceProgram program;
    private final KernelLauncher launcher;
    private final QuantizationKernels coding;
    private final AttentionScoreKernels scores;
    private final AttentionKernels attention;
    private final DeviceKernel copyPieces;
    private final DeviceKernel relayoutPieces;
    private final DeviceKernel crcRuns;
    private final DeviceKernel crcChunks;
    private final DeviceKernel ropeShift;
    private final DeviceKernel toFp8;
    private final DeviceKernel fromFp8;

    private GpuKernels(DeviceProgram program, int maxGroups) {
        this.program = program;
        launcher = new KernelLauncher(program, maxGroups);
        coding = new QuantizationKernels(launcher);
        scores = new AttentionScoreKernels(launcher);
        attention = new AttentionKernels(launcher);
        relayoutPieces = program.kernel("kv_relayout_pieces");
        copyPieces = program.kernel("kv_copy_pieces");
        crcRuns = program.kernel("kv_crc32c_runs");
        crcChunks = program.kernel("kv_crc32c_chunks");
        ropeShift = program.kernel("kv_rope_shift");
        toFp8 = program.kernel("kv_to_fp8");
        fromFp8 = program.kernel("kv_from_fp8");
    }

    /// Loads them.
    ///
    /// @param maxGroups of 256 threads each that one call takes at a time: few leave an engine its
    ///     processors
    /// @throws DeviceException when the device runs no code, or does not take ours
    public static GpuKernels load(DeviceDriver driver, int maxGroups) {
        require(maxGroups >= 1, "groups", maxGroups);
        DeviceProgram program = driver.load(ptxSource());
        try {
            return new GpuKernels(program, maxGroups);
        } catch (DeviceException refused) {
            program.close();
            throw refused;
        }
    }

    static String ptxSource() {
        try (InputStream text = Objects.requireNonNull(GpuKernels.class.getResourceAsStream("kernels.ptx"))) {
            return new String(text.readAllBytes(), StandardCharsets.US_ASCII);
        } catch (IOException broken) {
            throw new UncheckedIOException(broken);
        }
    }

    /// Copies pieces of one size, for those that are too small for the copy engine: within the device, or between it
    /// and host memory that it reaches, see [DeviceDriver#isReachable].
    ///
    /// @param from on the device, `count` addresses of 8 bytes; each, like `pieceBytes`, a multiple of 16
    /// @param to the same for where they go, all apart
    /// @throws IllegalArgumentException for 32 GiB and more
    public void copyPieces(DeviceStream stream, DeviceSpan from, DeviceSpan to, int pieceBytes, int count) {
        require(pieceBytes > 0 && pieceBytes % UNIT_BYTES == 0, "pieceBytes", pieceBytes);
        requireAddressList(from, count);
        requireAddressList(to, count);
        int units = pieceBytes / UNIT_BYTES;
        long threads = Math.ceilDiv((long) units * count, UNITS_AT_ONCE);
        require((long) units * count < MAX_UNITS, "pieceBytes of %s pieces".formatted(count), pieceBytes);
        launcher.launch(
                stream,
                copyPieces,
                threads,
                from.address().value(),
                to.address().value(),
                units,
                count);
    }

    /// Makes codes of values while they are gathered, and values of codes while they are scattered.
    public QuantizationKernels quantization() {
        return coding;
    }

    /// Says what queries want of blocks.
    public AttentionScoreKernels scores() {
        return scores;
    }

    /// Attends over blocks.
    public AttentionKernels attention() {
        return attention;
    }

    /// Copies pieces of `[rows][columns]` entries within the device, each to `[columns][rows]`: an engine's
    /// tokens of heads to heads of tokens, and back with the two swapped.
    ///
    /// @param from on the device, `count` addresses of 8 bytes; each a multiple of 16
    /// @param to the same for where they go, all apart
    /// @param entryBytes of one row and column, a multiple of 16
    public void relayoutPieces(
            DeviceStream stream, DeviceSpan from, DeviceSpan to, int rows, int columns, int entryBytes, int count) {
        require(entryBytes > 0 && entryBytes % UNIT_BYTES == 0, "entryBytes", entryBytes);
        require(rows > 0, "rows", rows);
        require(columns > 0, "columns", columns);
        requireAddressList(from, count);
        requireAddressList(to, count);
        int units = entryBytes / UNIT_BYTES;
        launcher.launch(
                stream,
                relayoutPieces,
                (long) rows * columns * units * count,
                from.address().value(),
                to.address().value(),
                rows,
                columns,
                units,
                count);
    }

    /// CRC32C of each 64 KiB chunk.
    ///
    /// @param scratch of [#crcScratchBytes]
    /// @param sums 4 bytes a chunk, little-endian; [#blockChecksum] makes one of them
    public void crc32c(DeviceStream stream, DeviceSpan data, DeviceSpan scratch, DeviceSpan sums) {
        long runs = (data.bytes() + CRC_RUN_BYTES - 1) / CRC_RUN_BYTES;
        long chunks = (data.bytes() + CRC_CHUNK_BYTES - 1) / CRC_CHUNK_BYTES;
        require(scratch.bytes() >= 4 * runs, "scratch bytes", scratch.bytes());
        require(sums.bytes() >= 4 * chunks, "bytes for sums", sums.bytes());
        requireAligned("scratch bytes", scratch, Integer.BYTES);
        requireAligned("sums", sums, Integer.BYTES);
        launcher.launch(
                stream,
                crcRuns,
                runs,
                data.address().value(),
                data.bytes(),
                CRC_RUN_BYTES,
                scratch.address().value());
        launcher.launch(
                stream,
                crcChunks,
                chunks,
                scratch.address().value(),
                data.bytes(),
                CRC_RUN_BYTES,
                CRC_CHUNK_BYTES,
                sums.address().value());
    }

    /// Bytes that [#crc32c] needs to work with.
    public static long crcScratchBytes(long dataBytes) {
        return (dataBytes + CRC_RUN_BYTES - 1) / CRC_RUN_BYTES * Integer.BYTES;
    }

    /// Bytes of the sums of [#crc32c].
    public static long crcSumBytes(long dataBytes) {
        return (dataBytes + CRC_CHUNK_BYTES - 1) / CRC_CHUNK_BYTES * Integer.BYTES;
    }

    /// The checksum that the store has of a block, out of those of its chunks.
    ///
    /// @param sums as [#crc32c] leaves them, copied to native memory
    public static int blockChecksum(MemorySegment sums) {
        CRC32C whole = new CRC32C();
        whole.update(sums.asByteBuffer());
        return (int) whole.getValue();
    }

    /// Shifts rotated keys: rotates each as if it stood the given number of positions later.
    ///
    /// Exact for plain rotary embedding, and for scalings that change the frequencies once and for all;
    /// not for those that change them with the length of the sequence. In float32, then rounded to bf16.
    ///
    /// @param keys rows of bf16 values, one for each token and head; changed in place
    /// @param rowValues of each row
    /// @param turns of [#ropeAngles], on the device: `[pairs][cos, sin]` in float32
    /// @param pairs that are rotated; the values behind them stay
    /// @param halves whether value i goes with value i + pairs (as most models have it), and not 2i with
    ///     2i + 1
    public void ropeShift(
            DeviceStream stream, DeviceSpan keys, int rowValues, DeviceSpan turns, int pairs, boolean halves) {
        require(pairs > 0 && 2L * pairs <= rowValues, "pairs", pairs);
        require(turns.bytes() >= 8L * pairs, "bytes of turns", turns.bytes());
        require(keys.bytes() % (2L * rowValues) == 0, "bytes of keys", keys.bytes());
        requireAligned("keys", keys, Short.BYTES);
        requireAligned("turns", turns, Float.BYTES);
        long rows = keys.bytes() / (2L * rowValues);
        launcher.launch(
                stream,
                ropeShift,
                rows * pairs,
                keys.address().value(),
                turns.address().value(),
                rows,
                rowValues,
                pairs,
                halves ? 1 : 0);
    }

    /// Computes for [#ropeShift] in float64 how far each pair turns: pair `i` of `pairs` by
    /// `delta · base^(-i / pairs)`.
    ///
    /// @param delta positions; negative for earlier
    /// @param base of the model's frequencies, such as 10,000 or 500,000
    /// @param into `[pairs][cos, sin]` in float32, as many pairs as fit
    public static void ropeAngles(int delta, double base, MemorySegment into) {
        long pairs = into.byteSize() / 8;
        for (long pair = 0; pair < pairs; pair++) {
            double angle = delta * Math.pow(base, -(double) pair / pairs);
            into.setAtIndex(ValueLayout.JAVA_FLOAT_UNALIGNED, 2 * pair, (float) Math.cos(angle));
            into.setAtIndex(ValueLayout.JAVA_FLOAT_UNALIGNED, 2 * pair + 1, (float) Math.sin(angle));
        }
    }

    /// Makes fp8 (e4m3, largest 448) of bf16, each group of values with a scale of its own by which its
    /// largest finite value becomes 448, or less when that is smaller than any that float32 can be
    /// divided by (2^-126). In one pass over memory.
    ///
    /// @param values of bf16, whole groups
    /// @param group values of a group
    /// @param scales float32, one a group
    /// @param codes 1 byte a value; groups of a multiple of eight values are coded several times faster
    public void toFp8(DeviceStream stream, DeviceSpan values, int group, DeviceSpan scales, DeviceSpan codes) {
        long count = values.bytes() / 2;
        requireGroups(count, group, scales, codes, values);
        launcher.launch(
                stream,
                toFp8,
                KernelLauncher.vectorItems(count, group),
                convert(values.address(), count / group, group, scales, codes.address()));
    }

    /// Makes bf16 of what [#toFp8] made.
    public void fromFp8(DeviceStream stream, DeviceSpan codes, int group, DeviceSpan scales, DeviceSpan values) {
        long count = codes.bytes();
        requireGroups(count, group, scales, codes, values);
        launcher.launch(stream, fromFp8, count, convert(codes.address(), count, group, scales, values.address()));
    }

    private static long[] convert(DeviceAddress from, long count, int group, DeviceSpan scales, DeviceAddress to) {
        return new long[] {from.value(), count, group, scales.address().value(), to.value()};
    }

    private static void requireGroups(long count, int group, DeviceSpan scales, DeviceSpan codes, DeviceSpan values) {
        require(group > 0 && count > 0 && count % group == 0, "values of a group", group);
        require(scales.bytes() >= count / group * Float.BYTES, "bytes of scales", scales.bytes());
        require(codes.bytes() >= count, "bytes of codes", codes.bytes());
        require(values.bytes() >= 2 * count, "bytes of values", values.bytes());
        requireAligned("scales", scales, Float.BYTES);
        requireAligned("values", values, Short.BYTES);
    }

    @Override
    public void close() {
        program.close();
    }

    /// Runs kernels of one program, each over as many items as there are.
    ///
    /// @param maxGroups of threads that one call takes at a time
    record KernelLauncher(DeviceProgram program, int maxGroups) {

        /// Whole warps, as kernels count on.
        private static final int THREADS = 256;

        private static final int VECTOR_WIDTH = 8;

        DeviceKernel kernel(String name) {
            return program.kernel(name);
        }

        void launch(DeviceStream stream, DeviceKernel kernel, long items, long... arguments) {
            long groups = Math.clamp((items + THREADS - 1) / THREADS, 1, maxGroups);
            stream.launch(kernel, (int) groups, THREADS, arguments);
        }

        /// Threads for values in groups: one for eight values where groups are of multiples of eight, else
        /// one a group.
        static long vectorItems(long values, int group) {
            return values / (group % VECTOR_WIDTH == 0 ? VECTOR_WIDTH : group);
        }

        /// Refuses a list of places that is shorter than said.
        static void requireAddressList(DeviceSpan places, int count) {
            require(count > 0 && places.bytes() >= 8L * count, "count", count);
        }

        /// Refuses what begins where the device could not read it as it does: that would end it.
        static void requireAligned(String what, DeviceSpan span, int bytes) {
            long at = span.address().value();
            if (at % bytes != 0) {
                throw new IllegalArgumentException(
                        String.format(Locale.ROOT, "%s begin at 0x%x; it takes multiples of %s", what, at, bytes));
            }
        }

        static void require(boolean holds, String what, long value) {
            if (!holds) {
                throw new IllegalArgumentException(what + " " + value + " does not fit the rest");
            }
        }
    }
}
