package io.kvcache.bench.gpu;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.kvcache.bench.gpu.CopyBenchmarks.CopyBenchmark;
import io.kvcache.core.SharedBlocks;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.kernel.AttentionKernels.Scales;
import io.kvcache.gpu.kernel.AttentionPlan;
import io.kvcache.gpu.kernel.GpuKernels;
import io.kvcache.gpu.kernel.QuantizationKernels.QuantizationFormat;
import io.kvcache.gpu.kernel.QuantizationKernels.QuantizedBlock;
import io.kvcache.gpu.kernel.QuantizationKernels.RopeParameters;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// The kernels that are measured, beside a copy within the device of as many bytes, read and written
/// together: a kernel's share of that is what it reads and writes.
final class KernelBenchmarks implements AutoCloseable {

    private static final int GROUP = 128;
    private static final int ROW = 128;
    private static final int PAIRS = 64;

    /// A page of 16 tokens and 8 heads, which is a layer's of one side.
    private static final int PIECE = 32 << 10;

    private static final int TOKENS = 16;
    private static final int HEADS = 8;
    private static final int QUERY_HEADS = 32;
    private static final int SEQUENCES = 64;

    /// Pieces that a kernel copies rather than the copy engine.
    private static final int SMALL_PIECE = 16 << 10;

    /// Enough threads to use all of a large GPU, which an engine would not leave us.
    private static final int MAX_GROUPS = 4096;

    private final GpuFixture stage;
    private final GpuKernels kernels;
    private final DeviceSpan values;
    private final DeviceSpan other;
    private final List<DeviceSpan> lists = new ArrayList<>();

    private KernelBenchmarks(GpuFixture stage, GpuKernels kernels) {
        this.stage = stage;
        this.kernels = kernels;
        values = stage.first;
        other = stage.second;
    }

    /// Loads the benchmarks of this device; null where it runs no code.
    ///
    /// @param said told why there are none
    /// @throws DeviceException when the device is of no use
    static @Nullable KernelBenchmarks load(GpuFixture stage, Consumer<String> said) {
        try {
            return new KernelBenchmarks(stage, GpuKernels.load(stage.driver, MAX_GROUPS));
        } catch (DeviceException none) {
            if (none.error().isFatal()) {
                throw none;
            }
            said.accept("without kernels: " + none.getMessage());
            return null;
        }
    }

    List<CopyBenchmark> benchmarks() {
        List<CopyBenchmark> ways = new ArrayList<>(plain());
        ways.addAll(pieces());
        ways.addAll(coded());
        ways.add(attention());
        return ways;
    }

    private List<CopyBenchmark> plain() {
        long count = values.bytes() / 2;
        DeviceSpan codes = other.slice(0, count);
        DeviceSpan scales = other.slice(count, count / GROUP * Float.BYTES);
        DeviceSpan turns = ropeAngles();
        DeviceSpan sums = other.slice(0, GpuKernels.crcSumBytes(values.bytes()));
        DeviceSpan scratch = other.slice(1 << 20, GpuKernels.crcScratchBytes(values.bytes()));
        long coding = values.bytes() + count + scales.bytes();
        return List.of(
                benchmark("bf16 to fp8", coding, () -> kernels.toFp8(stage.stream(), values, GROUP, scales, codes)),
                benchmark("fp8 to bf16", coding, () -> kernels.fromFp8(stage.stream(), codes, GROUP, scales, values)),
                benchmark(
                        "rope shift",
                        2 * values.bytes(),
                        () -> kernels.ropeShift(stage.stream(), values, ROW, turns, PAIRS, true)),
                benchmark("crc32c", values.bytes(), () -> kernels.crc32c(stage.stream(), values, scratch, sums)));
    }

    /// Pieces from one half to the other, as between an engine's pages and blocks.
    private List<CopyBenchmark> pieces() {
        int small = count(SMALL_PIECE);
        int count = count(PIECE);
        DeviceSpan smallFrom = places(values, SMALL_PIECE, 1);
        DeviceSpan smallTo = places(other, SMALL_PIECE, 2);
        DeviceSpan from = places(values, PIECE, 1);
        DeviceSpan to = places(other, PIECE, 2);
        int entry = PIECE / TOKENS / HEADS;
        return List.of(
                benchmark(
                        "copied pieces",
                        2 * values.bytes(),
                        () -> kernels.copyPieces(stage.stream(), smallFrom, smallTo, SMALL_PIECE, small)),
                benchmark(
                        "relayout",
                        2 * values.bytes(),
                        () -> kernels.relayoutPieces(stage.stream(), from, to, TOKENS, HEADS, entry, count)));
    }

    /// Copies so many pieces, and ends with them.
    Runnable copyWorkload(int pieceBytes, int pieces) {
        DeviceSpan from = places(values, pieceBytes, 1);
        DeviceSpan to = places(other, pieceBytes, 2);
        return () -> {
            kernels.copyPieces(stage.stream(), from, to, pieceBytes, pieces);
            stage.awaitIdle();
        };
    }

    /// Turns all values so many times, and ends with that.
    Runnable ropeWorkload(int times) {
        DeviceSpan turns = ropeAngles();
        return () -> {
            for (int i = 0; i < times; i++) {
                kernels.ropeShift(stage.stream(), values, ROW, turns, PAIRS, true);
            }
            stage.awaitIdle();
        };
    }

    /// Blocks of codes from pages and back; keys turn on their way back from 8 bits.
    private List<CopyBenchmark> coded() {
        DeviceSpan pages = places(values, PIECE, 3);
        DeviceSpan turns = ropeAngles();
        int count = count(PIECE);
        List<CopyBenchmark> ways = new ArrayList<>();
        for (QuantizationFormat quantizationFormat : QuantizationFormat.values()) {
            QuantizedBlock block = new QuantizedBlock(quantizationFormat, GROUP, PIECE / 2, count);
            DeviceSpan bytes = other.slice(0, block.bytes());
            RopeParameters ropeParameters =
                    quantizationFormat == QuantizationFormat.FP8 ? new RopeParameters(turns, PAIRS, true, 2, 1) : null;
            String bits = quantizationFormat == QuantizationFormat.FP8 ? "fp8" : "int4";
            ways.add(benchmark(
                    "pages to " + bits,
                    values.bytes() + block.bytes(),
                    () -> kernels.quantization().gather(stage.stream(), pages, block, bytes)));
            ways.add(benchmark(
                    bits + (ropeParameters == null ? " to pages" : ", turned"),
                    values.bytes() + block.bytes(),
                    () -> kernels.quantization().scatter(stage.stream(), block, bytes, pages, ROW, ropeParameters)));
        }
        return ways;
    }

    /// One step of decoding of sequences that share nothing: what it reads are keys and values, once.
    private CopyBenchmark attention() {
        BlockShape shape = BlockShape.kv(1, HEADS, ROW, TOKENS, Dtype.BF16);
        int sequences = Math.min(SEQUENCES, count((int) shape.bytes()));
        int blocks = count((int) shape.bytes()) / sequences;
        Namespace namespace = Namespace.of("bench", shape);
        List<BlockChain> chains = IntStream.range(0, sequences)
                .mapToObj(sequence -> BlockChain.of(
                        namespace,
                        IntStream.generate(() -> sequence)
                                .limit((long) blocks * TOKENS)
                                .toArray()))
                .toList();
        List<Integer> tokens = Collections.nCopies(sequences, blocks * TOKENS);
        AttentionPlan step = AttentionPlan.of(shape, QUERY_HEADS, SharedBlocks.of(chains), tokens);
        DeviceSpan plan = onDevice(
                step.bytes(),
                words -> step.write(
                        words,
                        (sequence, block) -> values.address()
                                .plus(((long) sequence * blocks + block) * shape.bytes())
                                .value()));
        DeviceSpan queries = values.slice(0, step.queryBytes());
        DeviceSpan out = onDevice(step.queryBytes(), _ -> {});
        DeviceSpan scratch = onDevice(step.scratchBytes(), _ -> {});
        return benchmark(
                "attention",
                (long) sequences * blocks * shape.bytes(),
                () -> kernels.attention().attend(stage.stream(), step, plan, 0, Scales.NONE, queries, scratch, out));
    }

    private int count(int pieceBytes) {
        return Math.toIntExact(values.bytes() / pieceBytes);
    }

    /// Returns the places of the pieces of a span, in random order.
    private DeviceSpan places(DeviceSpan of, int pieceBytes, int seed) {
        List<Integer> order =
                new ArrayList<>(IntStream.range(0, count(pieceBytes)).boxed().toList());
        Collections.shuffle(order, new Random(seed));
        return onDevice(8L * order.size(), places -> {
            for (int i = 0; i < order.size(); i++) {
                long at = (long) order.get(i) * pieceBytes;
                places.setAtIndex(JAVA_LONG, i, of.address().plus(at).value());
            }
        });
    }

    private DeviceSpan ropeAngles() {
        return onDevice(8L * PAIRS, turns -> GpuKernels.ropeAngles(1, 10_000, turns));
    }

    /// Stays there until this is closed.
    private DeviceSpan onDevice(long bytes, Consumer<MemorySegment> content) {
        DeviceSpan list = stage.driver.allocate(bytes);
        lists.add(list);
        try (Arena arena = Arena.ofShared()) {
            MemorySegment host = arena.allocate(bytes, 8);
            content.accept(host);
            stage.stream().copyToDevice(host, list.address());
            stage.awaitIdle();
        }
        return list;
    }

    private CopyBenchmark benchmark(String name, long moved, Runnable run) {
        return new CopyBenchmark(
                name,
                moved,
                () -> {
                    run.run();
                    stage.awaitIdle();
                },
                stage::copyWithinDevice);
    }

    @Override
    public void close() {
        kernels.close();
        lists.forEach(stage.driver::free);
    }
}
