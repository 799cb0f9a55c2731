package io.kvcache.bench.opaque;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import io.kvcache.bench.replay.BlockCountingRule;
import io.kvcache.bench.replay.PrefixForest;
import io.kvcache.bench.store.StoreReplay;
import io.kvcache.bench.trace.TraceGenerator;
import io.kvcache.bench.trace.Workload;
import io.kvcache.core.contract.Repetitions;
import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.policy.PolicyKind;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

@Timeout(300)
@Tag("slow")
final class LmcacheReplayTest {

    /// 512 chunks to a slab, so that a short trace fills it many times over.
    private static final int SLOT_BYTES = 64 << 10;

    private static final int REQUESTS = Repetitions.usualOrFull(400, 800);

    private static final PrefixForest FOREST = new PrefixForest(
            new TraceGenerator(Workload.mixed(), 5).generate("generated:5", REQUESTS), BlockCountingRule.FULL_BLOCKS);

    @ParameterizedTest
    @CsvSource({"LRU,RESP", "IMPORTANCE,RESP", "IMPORTANCE,LM"})
    void givenATrace_whenReplayedAsObjects_thenAboutAsMuchIsFoundAsOfBlocks(
            PolicyKind policy, LmcacheReplay.ChunkProtocol chunkProtocol) throws Exception {
        LmcacheReplay.Settings settings = new LmcacheReplay.Settings(policy, 2L * SlabPool.SLAB_BYTES, SLOT_BYTES, 0);
        double blocks = new StoreReplay(FOREST, new StoreReplay.Settings(policy, settings.blocks(), SLOT_BYTES, 0))
                .run(requests -> {})
                .totals()
                .blockHitRatio();

        double objects = new LmcacheReplay(FOREST, settings).run(chunkProtocol).blockHitRatio();

        assertThat(objects).isCloseTo(blocks, within(0.02));
        assertThat(blocks).isBetween(0.1, 0.9);
    }
}
