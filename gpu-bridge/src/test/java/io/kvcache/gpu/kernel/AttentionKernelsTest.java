package io.kvcache.gpu.kernel;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.within;

import io.kvcache.core.SharedBlocks;
import io.kvcache.core.identity.AxisOrder;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.kernel.AttentionKernels.Scales;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// Attention over block tables against float64 over contiguous memory; unchanged on a real device.
final class AttentionKernelsTest {

    private KernelFixture rig;

    @SuppressWarnings("NullAway.Init") // opened before each test
    AttentionKernelsTest() {}

    @BeforeEach
    void open() {
        rig = new KernelFixture();
    }

    @AfterEach
    void close() {
        rig.close();
    }

    @ParameterizedTest
    @CsvSource({
        "1,1,8,1,1,BF16,LAYER_KV_HEAD_TOKEN,1,0",
        "1,2,64,16,4,BF16,LAYER_KV_HEAD_TOKEN,8,5",
        "3,2,33,4,6,BF16,LAYER_KV_TOKEN_HEAD,5,2",
        "2,1,256,16,1,BF16,LAYER_KV_TOKEN_HEAD,3,3",
        "2,4,32,16,8,FP8_E4M3,LAYER_KV_HEAD_TOKEN,4,4",
        "1,1,40,256,3,FP8_E4M3,LAYER_KV_TOKEN_HEAD,2,3"
    })
    void givenSequencesThatShare_whenAttended_thenAsInFloat64OverContiguousMemory(
            int layers,
            int heads,
            int dim,
            int blockTokens,
            int queryHeads,
            Dtype dtype,
            AxisOrder order,
            int sequences,
            int sharedBlocks) {
        BlockShape shape = new BlockShape(layers, 2, heads, dim, blockTokens, dtype, order);
        Batch batch = new Batch(shape, queryHeads, sequences, sharedBlocks, dim);
        Scales scales = dtype == Dtype.BF16 ? Scales.NONE : new Scales(0.5f, 0.25f);
        for (int layer = 0; layer < layers; layer++) {
            MemorySegment device = batch.onDevice(layer, scales);
            MemorySegment host = batch.onHost(layer, scales);
            for (int sequence = 0; sequence < sequences; sequence++) {
                for (int head = 0; head < queryHeads; head++) {
                    double[] expected = batch.contiguous(layer, scales, sequence, head);
                    for (int i = 0; i < dim; i++) {
                        long at = ((long) sequence * queryHeads + head) * dim + i;
                        String what = "layer %s, sequence %s, head %s, value %s".formatted(layer, sequence, head, i);
                        assertThat((double) host.getAtIndex(JAVA_FLOAT, at))
                                .as("host, " + what)
                                .isCloseTo(expected[i], within(1e-6 * Math.max(1, Math.abs(expected[i]))));
                        assertThat(KernelFixture.bf16(device, at))
                                .as("device, " + what)
                                .isCloseTo(expected[i], within(SmallFloatFormats.bf16Step(expected[i]) + 1e-4));
                    }
                }
            }
        }
    }

    @Test
    void givenBlocksThatWereMoved_whenAttended_thenEveryBitIsTheSame() {
        BlockShape shape = BlockShape.kv(1, 2, 32, 8, Dtype.BF16);
        Batch batch = new Batch(shape, 4, 5, 3, 7);
        MemorySegment before = batch.onDevice(0, Scales.NONE);
        batch.moveAll();
        assertThat(batch.onDevice(0, Scales.NONE).mismatch(before)).isEqualTo(-1);
    }

    @Test
    void givenWhatKernelsDoNotTake_whenPlanned_thenItIsRefusedByName() {
        SharedBlocks one = SharedBlocks.of(List.of(chain(BlockShape.kv(1, 2, 8, 4, Dtype.BF16), 4)));
        requireRefused(BlockShape.kv(1, 2, 257, 4, Dtype.BF16), 2, one, 4, "headDim 257; it takes up to 256");
        requireRefused(BlockShape.kv(1, 2, 8, 4, Dtype.F16), 2, one, 4, "dtype F16; it takes BF16 and FP8_E4M3");
        requireRefused(BlockShape.mla(1, 8, 4, Dtype.BF16), 2, one, 4, "planes 1; it takes 2");
        requireRefused(BlockShape.kv(1, 2, 8, 4, Dtype.BF16), 3, one, 4, "queryHeads 3; it takes multiples of 2");
        requireRefused(BlockShape.kv(1, 2, 8, 4, Dtype.BF16), 2, one, 3, "tokens of sequence 0 3; it takes 4 and up");
        SharedBlocks none = SharedBlocks.of(List.of(chain(BlockShape.kv(1, 2, 8, 4, Dtype.BF16), 0)));
        requireRefused(BlockShape.kv(1, 2, 8, 4, Dtype.BF16), 2, none, 0, "tokens of sequence 0 0; it takes 1 and up");
    }

    private static void requireRefused(
            BlockShape shape, int queryHeads, SharedBlocks shared, int tokens, String message) {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> AttentionPlan.of(shape, queryHeads, shared, List.of(tokens)))
                .withMessage(message);
    }

    private static BlockChain chain(BlockShape shape, int tokens) {
        return BlockChain.of(Namespace.of("model", shape), new int[tokens]);
    }

    /// Sequences with random keys and values, in blocks that lie in any order, and their queries. All have the first
    /// blocks in common, every second one more, and each has tokens of its own, the last block perhaps in part.
    private final class Batch {

        private final BlockShape shape;
        private final int queryHeads;
        private final Random random;
        private final List<Integer> tokens = new ArrayList<>();
        private final List<List<MemorySegment>> blocks = new ArrayList<>();
        private final Map<MemorySegment, DeviceSpan> onDevice = new HashMap<>();
        private final AttentionPlan plan;
        private final MemorySegment queries;

        Batch(BlockShape shape, int queryHeads, int sequences, int sharedBlocks, long seed) {
            this.shape = shape;
            this.queryHeads = queryHeads;
            random = new Random(seed);
            Namespace namespace = Namespace.of("model", shape);
            Map<BlockKey, MemorySegment> known = new HashMap<>();
            List<BlockChain> chains = new ArrayList<>();
            for (int sequence = 0; sequence < sequences; sequence++) {
                int own = 1 + random.nextInt(3 * shape.blockTokens());
                int[] ids = new int[sharedBlocks * shape.blockTokens() + own];
                for (int i = sharedBlocks * shape.blockTokens(); i < ids.length; i++) {
                    ids[i] = i < (sharedBlocks + 1) * shape.blockTokens() ? 1 + sequence % 2 : 3 + sequence;
                }
                BlockChain chain = BlockChain.of(namespace, ids);
                List<MemorySegment> here = new ArrayList<>();
                for (int i = 0; i < chain.length(); i++) {
                    here.add(known.computeIfAbsent(chain.key(i), _ -> block()));
                }
                if (ids.length % shape.blockTokens() != 0) {
                    here.add(block());
                }
                chains.add(chain);
                tokens.add(ids.length);
                blocks.add(here);
            }
            SharedBlocks shared = SharedBlocks.of(chains);
            plan = AttentionPlan.of(shape, queryHeads, shared, tokens);
            int apart = IntStream.range(0, sequences)
                    .filter(sequence -> tokens.get(sequence) % shape.blockTokens() != 0)
                    .toArray()
                    .length;
            assertThat(plan.blocks()).isEqualTo(shared.blocksRead() + apart);
            queries = normal(sequences * queryHeads * shape.headDim());
            moveAll();
        }

        private MemorySegment block() {
            int values = (int) (shape.bytes() / shape.dtype().bytes());
            if (shape.dtype() == Dtype.BF16) {
                return normal(values);
            }
            MemorySegment codes = rig.arena.allocate(values, 8);
            for (int i = 0; i < values; i++) {
                codes.set(JAVA_BYTE, i, (byte) (random.nextInt(72) | random.nextInt(2) << 7)); // up to 4
            }
            return codes;
        }

        private MemorySegment normal(int values) {
            MemorySegment memory = rig.arena.allocate(2L * values, 8);
            for (int i = 0; i < values; i++) {
                memory.setAtIndex(JAVA_SHORT, i, SmallFloatFormats.toBf16(random.nextGaussian()));
            }
            return memory;
        }

        /// Puts each block somewhere else on the device.
        void moveAll() {
            List<MemorySegment> all = new ArrayList<>(
                    blocks.stream().flatMap(List::stream).distinct().toList());
            Collections.shuffle(all, random);
            onDevice.clear();
            all.forEach(block -> onDevice.put(block, rig.source(block)));
        }

        MemorySegment onDevice(int layer, Scales scales) {
            MemorySegment words = rig.arena.allocate(plan.bytes(), 8);
            plan.write(
                    words,
                    (sequence, block) -> onDevice.get(blocks.get(sequence).get(block))
                            .address()
                            .value());
            DeviceSpan out = rig.target(plan.queryBytes());
            DeviceSpan scratch = rig.target(plan.scratchBytes());
            rig.kernels
                    .attention()
                    .attend(rig.stream, plan, rig.source(words), layer, scales, rig.source(queries), scratch, out);
            rig.read(scratch);
            return rig.read(out);
        }

        MemorySegment onHost(int layer, Scales scales) {
            long values = plan.queryBytes() / 2;
            MemorySegment asked = rig.arena.allocate(4 * values, 8);
            for (long i = 0; i < values; i++) {
                asked.setAtIndex(JAVA_FLOAT, i, (float) KernelFixture.bf16(queries, i));
            }
            MemorySegment out = rig.arena.allocate(4 * values, 8);
            new HostAttention(plan, (sequence, block) -> blocks.get(sequence).get(block))
                    .attend(layer, scales, asked, out);
            return out;
        }

        /// One softmax over all tokens of a sequence, whose keys and values are gathered first.
        double[] contiguous(int layer, Scales scales, int sequence, int queryHead) {
            int dim = shape.headDim();
            int head = queryHead / (queryHeads / shape.kvHeads());
            int count = tokens.get(sequence);
            double[] scores = new double[count];
            double most = Double.NEGATIVE_INFINITY;
            for (int token = 0; token < count; token++) {
                for (int i = 0; i < dim; i++) {
                    double query = KernelFixture.bf16(queries, ((long) sequence * queryHeads + queryHead) * dim + i);
                    scores[token] += query * element(layer, 0, sequence, head, token, i) * scales.keys();
                }
                scores[token] /= Math.sqrt(dim);
                most = Math.max(most, scores[token]);
            }
            double sum = 0;
            double[] out = new double[dim];
            for (int token = 0; token < count; token++) {
                double weight = Math.exp(scores[token] - most);
                sum += weight;
                for (int i = 0; i < dim; i++) {
                    out[i] += weight * element(layer, 1, sequence, head, token, i) * scales.values();
                }
            }
            for (int i = 0; i < dim; i++) {
                out[i] /= sum;
            }
            return out;
        }

        private double element(int layer, int plane, int sequence, int head, int token, int i) {
            MemorySegment block = blocks.get(sequence).get(token / shape.blockTokens());
            long row = shape.tokenRow(layer, plane, head, token % shape.blockTokens())
                    .offset();
            return shape.dtype() == Dtype.BF16
                    ? KernelFixture.bf16(block, row / 2 + i)
                    : SmallFloatFormats.ofE4m3(block.get(JAVA_BYTE, row + i));
        }
    }
}
