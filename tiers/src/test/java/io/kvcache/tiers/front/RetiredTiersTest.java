package io.kvcache.tiers.front;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.kvcache.core.tier.SubmitResult;
import io.kvcache.core.tier.TierBlock;
import io.kvcache.core.tier.TierListener;
import io.kvcache.tiers.front.CachedDiskTier.RetiredTiers;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// A disk that failed comes back, even if its earlier front is still in use.
final class RetiredTiersTest {

    private final Arena arena = Arena.ofShared();
    private final Logger log = Logger.getLogger(FrontCacheTier.class.getName());
    private final RecordingTierListener store = new RecordingTierListener();
    private final RetiredTiers retiredTiers = new RetiredTiers();
    private final List<ScriptedTier> disks = new ArrayList<>();
    private final List<ScriptedTier> fronts = new ArrayList<>();

    @BeforeEach
    void quiet() {
        log.setLevel(Level.OFF);
    }

    @AfterEach
    void close() {
        log.setLevel(null);
        arena.close();
    }

    private CachedDiskTier open() {
        return new CachedDiskTier(
                "front", side -> opened(side, disks), side -> opened(side, fronts), store, retiredTiers);
    }

    private static ScriptedTier opened(TierListener side, List<ScriptedTier> among) {
        among.add(new ScriptedTier(side));
        return among.getLast();
    }

    private void write(CachedDiskTier tier) {
        TierBlock block = new TierBlock(1, 1, 0, 0, 3, false, 0, 5000, 0, 0);
        MemorySegment slot = arena.allocate(8192, 4096);
        assertThat(tier.write(block, List.of(slot), 1)).isEqualTo(SubmitResult.ACCEPTED);
    }

    @Test
    void givenAFrontThatSomebodyUses_whenItsDiskFailedAndIsOpenedAgain_thenItServesAndTheFrontComesLater() {
        CachedDiskTier first = open();
        fronts.getFirst().inUse = true;
        first.closeAfterFailure();
        assertThat(disks.getFirst().closed).isEqualTo(1);
        assertThat(fronts.getFirst().closed).isZero();

        CachedDiskTier second = open();
        write(second);
        disks.getLast().held = false;
        second.tick(1, 0);
        assertThat(store.addresses).containsKey(1L);
        assertThat(fronts).as("none is opened over one that is used").hasSize(1);
        assertThatIllegalStateException().isThrownBy(retiredTiers::close).withMessage("somebody reads there");

        fronts.getFirst().inUse = false;
        second.tick(1 + 2 * FrontCacheTier.INITIAL_BACKOFF_NANOS, 0);
        assertThat(fronts.getFirst().closed).isEqualTo(1);
        assertThat(fronts).hasSize(2);
        second.close();
        retiredTiers.close();
        assertThat(fronts.getLast().closed).isEqualTo(1);
        assertThat(disks.getLast().closed).isEqualTo(1);
    }

    @Test
    void givenAFrontWithSomethingOnItsWay_whenItsDiskFailed_thenItIsClosedLaterAndNotParked() {
        CachedDiskTier tier = open();
        write(tier);
        ScriptedTier front = fronts.getFirst();
        front.inUse = true;
        assertThatIllegalStateException().isThrownBy(tier::closeAfterFailure).withMessage("somebody reads there");
        front.inUse = false;
        front.held = false;
        tier.tick(1, 0);
        tier.closeAfterFailure();
        assertThat(front.closed).isEqualTo(1);
        assertThat(disks.getFirst().closed).isEqualTo(1);
    }
}
