package io.kvcache.gpu.kernel;

import static io.kvcache.gpu.kernel.KernelFixture.bf16;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.within;

import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.kernel.AttentionScoreKernels.KeyShape;
import io.kvcache.gpu.kernel.AttentionScoreKernels.Queries;
import java.lang.foreign.MemorySegment;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// Scores of blocks against float64; unchanged on a real device.
final class AttentionScoreKernelsTest {

    private KernelFixture rig;

    @SuppressWarnings("NullAway.Init") // opened before each test
    AttentionScoreKernelsTest() {}

    @BeforeEach
    void open() {
        rig = new KernelFixture();
    }

    @AfterEach
    void close() {
        rig.close();
    }

    @ParameterizedTest
    @CsvSource({"1,1,1,1,1,1", "16,2,64,5,3,8", "7,3,17,9,2,3", "16,8,128,3,1,8", "3,1,5,40,4,6"})
    void givenBlocks_whenScored_thenAsInFloat64AndBoundsAreNotBelow(
            int tokens, int heads, int dim, int blocks, int wanted, int queryHeads) {
        KeyShape shape = new KeyShape(tokens, heads, dim);
        int blockValues = tokens * heads * dim;
        MemorySegment keys = rig.values(blocks * blockValues, tokens);
        MemorySegment asked = rig.values(wanted * queryHeads * dim, dim);
        DeviceSpan places = rig.addressList(rig.source(keys), 2L * blockValues, blocks, true);
        Queries queries = new Queries(rig.source(asked), wanted, queryHeads);
        DeviceSpan scratch = rig.target(queries.scratchBytes(blocks));
        DeviceSpan scores = rig.target(4L * blocks);
        DeviceSpan bounds = rig.target(shape.boundBytes(blocks));
        DeviceSpan atMost = rig.target(4L * blocks);
        AttentionScoreKernels kernels = rig.kernels.scores();
        kernels.scoreKeys(rig.stream, shape, places, blocks, queries, scratch, scores);
        kernels.computeBounds(rig.stream, shape, places, blocks, bounds);
        kernels.scoreBounds(rig.stream, shape, bounds, blocks, queries, scratch, atMost);
        MemorySegment found = rig.read(scores);
        MemorySegment ends = rig.read(bounds);
        MemorySegment most = rig.read(atMost);
        for (int block = 0; block < blocks; block++) {
            long first = (long) (blocks - 1 - block) * blockValues;
            requireEnds(shape, keys, first, ends, (long) block * 2 * heads * dim);
            Reference reference = new Reference(shape, keys, first, ends, (long) block * 2 * heads * dim, asked);
            double score = reference.score(wanted, queryHeads, false);
            double bound = reference.score(wanted, queryHeads, true);
            double slack = reference.size * 0x1p-20;
            assertThat((double) found.getAtIndex(JAVA_FLOAT, block)).isCloseTo(score, within(slack));
            assertThat((double) most.getAtIndex(JAVA_FLOAT, block)).isCloseTo(bound, within(slack));
            assertThat(bound).isGreaterThanOrEqualTo(score - slack);
        }
    }

    private static void requireEnds(KeyShape shape, MemorySegment keys, long first, MemorySegment ends, long at) {
        for (int channel = 0; channel < shape.rowValues(); channel++) {
            double least = Double.MAX_VALUE;
            double most = -Double.MAX_VALUE;
            for (int token = 0; token < shape.tokens(); token++) {
                double value = bf16(keys, first + (long) token * shape.rowValues() + channel);
                least = Math.min(least, value);
                most = Math.max(most, value);
            }
            assertThat(bf16(ends, at + channel)).isEqualTo(least);
            assertThat(bf16(ends, at + shape.rowValues() + channel)).isEqualTo(most);
        }
    }

    /// One block, in float64.
    private static final class Reference {
        private final KeyShape shape;
        private final MemorySegment keys;
        private final long first;
        private final MemorySegment ends;
        private final long endsAt;
        private final MemorySegment asked;
        double size; // of what was added up

        Reference(
                KeyShape shape, MemorySegment keys, long first, MemorySegment ends, long endsAt, MemorySegment asked) {
            this.shape = shape;
            this.keys = keys;
            this.first = first;
            this.ends = ends;
            this.endsAt = endsAt;
            this.asked = asked;
        }

        double score(int wanted, int queryHeads, boolean bound) {
            double sum = 0;
            size = 0;
            for (int query = 0; query < wanted * queryHeads; query++) {
                int head = query % queryHeads / (queryHeads / shape.heads());
                sum += bound ? bound(query, head) : most(query, head);
            }
            double by = 1 / Math.sqrt(shape.dim()) / (wanted * queryHeads);
            size *= by;
            return sum * by;
        }

        private double most(int query, int head) {
            double most = -Double.MAX_VALUE;
            for (int token = 0; token < shape.tokens(); token++) {
                double product = 0;
                for (int i = 0; i < shape.dim(); i++) {
                    double part = bf16(asked, (long) query * shape.dim() + i)
                            * bf16(keys, first + ((long) token * shape.heads() + head) * shape.dim() + i);
                    product += part;
                    size += Math.abs(part);
                }
                most = Math.max(most, product);
            }
            return most;
        }

        private double bound(int query, int head) {
            double product = 0;
            for (int i = 0; i < shape.dim(); i++) {
                double by = bf16(asked, (long) query * shape.dim() + i);
                double low = by * bf16(ends, endsAt + (long) head * shape.dim() + i);
                double high = by * bf16(ends, endsAt + shape.rowValues() + (long) head * shape.dim() + i);
                product += Math.max(low, high);
                size += Math.max(Math.abs(low), Math.abs(high));
            }
            return product;
        }
    }

    /// The token that is asked for is in one block alone.
    @Test
    void givenAKeyLikeTheQuery_whenScored_thenItsBlockIsFirst() {
        KeyShape shape = new KeyShape(16, 1, 64);
        MemorySegment keys = rig.values(8 * 16 * 64, 3);
        MemorySegment asked = rig.arena.allocate(128, 8);
        for (int i = 0; i < 64; i++) {
            short like = SmallFloatFormats.toBf16(i % 2 == 0 ? 900 : -900);
            asked.setAtIndex(JAVA_SHORT, i, like);
            keys.setAtIndex(JAVA_SHORT, (5 * 16 + 7) * 64L + i, like);
        }
        DeviceSpan places = rig.addressList(rig.source(keys), 2 * 16 * 64, 8, false);
        Queries queries = new Queries(rig.source(asked), 1, 1);
        DeviceSpan scores = rig.target(32);
        rig.kernels
                .scores()
                .scoreKeys(rig.stream, shape, places, 8, queries, rig.target(queries.scratchBytes(8)), scores);
        MemorySegment found = rig.read(scores);
        for (int block = 0; block < 8; block++) {
            if (block != 5) {
                assertThat(found.getAtIndex(JAVA_FLOAT, block)).isLessThan(found.getAtIndex(JAVA_FLOAT, 5));
            }
        }
    }

    @Test
    void givenSizesThatDoNotFit_whenCalled_thenRefusedBeforeAnythingRuns() {
        KeyShape shape = new KeyShape(2, 2, 4);
        DeviceSpan room = rig.target(64);
        AttentionScoreKernels kernels = rig.kernels.scores();
        Queries queries = new Queries(room, 1, 2);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> kernels.scoreKeys(rig.stream, shape, room, 9, queries, room, room))
                .withMessageContaining("count 9");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> kernels.scoreKeys(rig.stream, shape, room, 1, new Queries(room, 1, 3), room, room))
                .withMessageContaining("heads of queries 3");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> kernels.scoreKeys(rig.stream, shape, room, 1, new Queries(room, 9, 2), room, room))
                .withMessageContaining("bytes of queries");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> kernels.computeBounds(rig.stream, shape, room, 3, room))
                .withMessageContaining("bytes of bounds");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> kernels.scoreBounds(rig.stream, shape, room, 2, queries, room.slice(0, 8), room))
                .withMessageContaining("scratch");
        assertThatIllegalArgumentException().isThrownBy(() -> new KeyShape(1, 0, 1));
    }
}
