package io.kvcache.gpu.sequence;

import static io.kvcache.gpu.sequence.PagedEngine.BLOCK_TOKENS;
import static io.kvcache.gpu.sequence.PagedEngine.LONG;
import static io.kvcache.gpu.sequence.PagedEngine.SHAPE;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import io.kvcache.core.SharedBlocks;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.gpu.cuda.FakeCuda;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.kernel.AttentionKernels.Scales;
import io.kvcache.gpu.kernel.AttentionPlan;
import io.kvcache.gpu.kernel.GpuKernels;
import io.kvcache.gpu.sequence.PagedEngine.Request;
import io.kvcache.gpu.tier.CudaTier;
import io.kvcache.tiers.TieredKvCache;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// Attention over the pages of sequences that share, were forked, preempted and resumed, against float64 over what
/// the naive model says that their tokens have.
final class PagedAttentionTest {

    private static final int QUERY_HEADS = 4;
    private static final int DIM = SHAPE.headDim();

    private final FakeCuda fakeCuda = FakeCuda.reset();
    private final CudaTier tier = CudaTier.withDriver("GPU", fakeCuda::open, 8 << 20);
    private final TieredKvCache cache = TieredKvCache.builder()
            .hostBytes(32 << 20)
            .prefaultInBackground(false)
            .admission(AdmissionKind.ALWAYS)
            .tier(tier)
            .build();
    private final PagedEngine engine = new PagedEngine(fakeCuda, cache, tier, 200);
    private final Arena arena = Arena.ofShared();

    @AfterEach
    void close() {
        engine.close();
        cache.close();
        arena.close();
        assertThat(fakeCuda.left()).isEmpty();
    }

    @Test
    void givenSequencesThatShareForkAndCameBack_whenAttended_thenAsInFloat64() {
        int[] common = IntStream.range(0, 5 * BLOCK_TOKENS + 3).toArray();
        Request first = engine.begin(common);
        Request second = engine.begin(
                IntStream.concat(IntStream.of(common), IntStream.range(0, 30)).toArray());
        Request fork = second.fork();
        Request resumed = engine.begin(IntStream.concat(IntStream.of(common), IntStream.range(500, 520))
                .toArray());
        assertThat(fork.grow(4, 5, 6)).isTrue();
        assertThat(resumed.sequence.preempt(LONG)).isTrue();
        assertThat(first.grow(9, 9)).isTrue();
        for (int seed = 1; seed < 12; seed++) {
            engine.begin(IntStream.range(1000 * seed, 1000 * seed + 150).toArray())
                    .close();
        }
        assertThat(resumed.sequence.resume(LONG)).isTrue();
        resumed.verify();
        List<Request> batch = List.of(first, second, fork, resumed);
        SharedBlocks shared = SharedBlocks.of(
                batch.stream().map(each -> each.sequence.chain()).toList());
        AttentionPlan plan = AttentionPlan.of(
                SHAPE, QUERY_HEADS, shared, batch.stream().map(Request::length).toList());
        assertThat(shared.sections().getFirst().blocks()).isEqualTo(5);
        MemorySegment queries = queries(batch.size());
        for (int layer = 0; layer < SHAPE.layers(); layer++) {
            MemorySegment out = attend(plan, batch, layer, queries);
            for (int sequence = 0; sequence < batch.size(); sequence++) {
                for (int head = 0; head < QUERY_HEADS; head++) {
                    requireEqual(out, queries, batch.get(sequence), layer, sequence, head);
                }
            }
        }
        batch.forEach(Request::close);
    }

    private MemorySegment queries(int sequences) {
        Random random = new Random(1);
        MemorySegment queries = arena.allocate(2L * sequences * QUERY_HEADS * DIM, 64);
        for (long i = 0; i < queries.byteSize() / 2; i++) {
            queries.setAtIndex(
                    JAVA_SHORT, i, (short) (Float.floatToRawIntBits((float) random.nextGaussian()) >>> Short.SIZE));
        }
        return queries;
    }

    private MemorySegment attend(AttentionPlan plan, List<Request> batch, int layer, MemorySegment queries) {
        GpuKernels kernels = GpuKernels.load(engine.driver, 3);
        MemorySegment words = arena.allocate(plan.bytes(), 64);
        plan.write(
                words,
                (sequence, block) ->
                        batch.get(sequence).sequence.page(block).address().value());
        List<DeviceSpan> spans = List.of(
                engine.driver.allocate(plan.bytes()),
                engine.driver.allocate(plan.queryBytes()),
                engine.driver.allocate(plan.scratchBytes()),
                engine.driver.allocate(plan.queryBytes()));
        engine.stream.copyToDevice(words, spans.get(0).address());
        engine.stream.copyToDevice(queries, spans.get(1).address());
        kernels.attention()
                .attend(
                        engine.stream,
                        plan,
                        spans.get(0),
                        layer,
                        Scales.NONE,
                        spans.get(1),
                        spans.get(2),
                        spans.get(3));
        MemorySegment out = arena.allocate(plan.queryBytes(), 64);
        engine.stream.copyToHost(spans.get(3).address(), out);
        engine.finish();
        kernels.close();
        spans.forEach(engine.driver::free);
        return out;
    }

    private static double bf16(MemorySegment memory, long index) {
        return toDouble(memory.getAtIndex(JAVA_SHORT, index));
    }

    private static double toDouble(short bits) {
        return Float.intBitsToFloat(bits << Short.SIZE);
    }

    /// One softmax over all tokens, whose keys and values are what [PagedEngine] computes.
    private static void requireEqual(
            MemorySegment out, MemorySegment queries, Request request, int layer, int sequence, int queryHead) {
        int head = queryHead / (QUERY_HEADS / SHAPE.kvHeads());
        int[] tokens = request.tokens();
        long query = ((long) sequence * QUERY_HEADS + queryHead) * DIM;
        double[] scores = new double[tokens.length];
        for (int token = 0; token < tokens.length; token++) {
            for (int i = 0; i < DIM; i++) {
                scores[token] += bf16(queries, query + i) * element(tokens, layer, 0, head, token, i) / Math.sqrt(DIM);
            }
        }
        double most = Arrays.stream(scores).max().orElseThrow();
        double sum = 0;
        double[] expected = new double[DIM];
        for (int token = 0; token < tokens.length; token++) {
            double weight = Math.exp(scores[token] - most);
            sum += weight;
            for (int i = 0; i < DIM; i++) {
                expected[i] += weight * element(tokens, layer, 1, head, token, i);
            }
        }
        for (int i = 0; i < DIM; i++) {
            assertThat(bf16(out, query + i))
                    .as("sequence %s, layer %s, head %s, value %s", sequence, layer, queryHead, i)
                    .isCloseTo(expected[i] / sum, within(0.01));
        }
    }

    private static double element(int[] tokens, int layer, int plane, int head, int token, int i) {
        return toDouble(PagedEngine.value(PagedEngine.hash(tokens, token + 1), layer * 4 + plane * 2 + head, i));
    }
}
