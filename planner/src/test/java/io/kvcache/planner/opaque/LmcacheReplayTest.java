package io.kvcache.planner.opaque;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import io.kvcache.core.contract.Repetitions;
import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.planner.replay.BlockCountingRule;
import io.kvcache.planner.replay.PrefixForest;
import io.kvcache.planner.store.StoreReplay;
import io.kvcache.planner.trace.Trace;
import io.kvcache.planner.trace.TraceGenerator;
import io.kvcache.planner.trace.TraceGenerator.Workload;
import io.kvcache.planner.trace.TraceReader;
import io.kvcache.planner.trace.TraceReader.MalformedLine;
import io.kvcache.planner.trace.TraceSource;
import java.io.IOException;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

@Timeout(300)
@Tag("slow")
final class LmcacheReplayTest {

    /// 1,024 chunks in the memory, so that a short trace fills it many times over.
    private static final int SLOT_BYTES = 64 << 10;

    private static final int REQUESTS = Repetitions.usualOrFull(400, 800);

    private static final int AGENT_REQUESTS = Repetitions.usualOrFull(500, 2000);

    @ParameterizedTest
    @CsvSource({
        "generated, LRU, RESP",
        "generated, IMPORTANCE, RESP",
        "generated, IMPORTANCE, LM",
        "agents, IMPORTANCE, RESP",
        "agents, IMPORTANCE, LM"
    })
    void givenATrace_whenReplayedAsObjects_thenAboutAsMuchIsFoundAsOfBlocks(
            String trace, PolicyKind policy, LmcacheReplay.ChunkProtocol chunkProtocol) throws Exception {
        PrefixForest forest = new PrefixForest(trace(trace), BlockCountingRule.FULL_BLOCKS);
        LmcacheReplay.Settings settings = new LmcacheReplay.Settings(policy, 2L * SlabPool.MIN_BYTES, SLOT_BYTES, 0);
        double blocks = new StoreReplay(forest, new StoreReplay.Settings(policy, settings.blocks(), SLOT_BYTES, 0))
                .run(requests -> {})
                .totals()
                .blockHitRatio();

        double objects = new LmcacheReplay(forest, settings).run(chunkProtocol).blockHitRatio();

        assertThat(objects).isCloseTo(blocks, within(0.02));
        assertThat(blocks).isBetween(0.1, 0.9);
    }

    private static Trace trace(String name) throws IOException {
        return name.equals("agents")
                ? TraceSource.parse("agents:1:requests=" + AGENT_REQUESTS)
                        .load(new TraceReader(MalformedLine.Handling.REFUSE, _ -> {}))
                : new TraceGenerator(Workload.mixed(), 5).generate(name, REQUESTS);
    }
}
