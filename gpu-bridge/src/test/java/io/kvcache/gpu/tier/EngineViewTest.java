package io.kvcache.gpu.tier;

import static io.kvcache.gpu.tier.TierHarness.chain;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.gpu.cuda.StandIn;
import java.lang.foreign.MemorySegment;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// What an engine finds on a device, and keeps of it, while the tier closes, fails or moves blocks.
final class EngineViewTest {

    private static final long BYTES = 4 << 20;

    private final StandIn standIn = StandIn.fresh();
    private final TierHarness store = new TierHarness();
    private final Logger log = Logger.getLogger("io.kvcache.gpu");

    @BeforeEach
    void onlyOnTheStandIn() {
        assumeThat(standIn.holds()).as("a driver whose copies can be held back").isTrue();
        log.setLevel(Level.OFF);
    }

    @AfterEach
    void reset() {
        log.setLevel(null);
        StandIn.fresh();
        assertThat(standIn.left()).isEmpty();
        store.close();
    }

    private void write(DeviceTier tier, BlockKey key) {
        store.until(tier, () -> store.write(tier, key));
    }

    @Test
    void givenAWriteThatEndsWhileTheTierCloses_whenAcquiredAfterwards_thenNothingIsFound() {
        BlockChain chain = chain(1);
        CudaTier source = CudaTier.over("device", standIn::open, BYTES);
        DeviceTier tier = (DeviceTier) source.open(store, MemorySegment.NULL);
        store.tick(tier);
        write(tier, chain.key(0));
        tier.close();
        assertThat(store.written).isEqualTo(1);
        try (DeviceBlockTable table = source.acquire(chain, 0)) {
            assertThat(table.endBlock()).as("of memory that is given back").isZero();
        }
    }
}
