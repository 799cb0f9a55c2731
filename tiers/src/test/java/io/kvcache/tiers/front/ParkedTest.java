package io.kvcache.tiers.front;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.kvcache.core.tier.SubmitResult;
import io.kvcache.core.tier.TierBlock;
import io.kvcache.core.tier.TierListener;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// A disk that failed comes back, whoever still uses what was in front of it.
final class ParkedTest {

    private final Arena arena = Arena.ofShared();
    private final Logger log = Logger.getLogger(Front.class.getName());
    private final HeardStore store = new HeardStore();
    private final Parked parked = new Parked();
    private final List<HeldFront> disks = new ArrayList<>();
    private final List<HeldFront> fronts = new ArrayList<>();

    @BeforeEach
    void quiet() {
        log.setLevel(Level.OFF);
    }

    @AfterEach
    void close() {
        log.setLevel(null);
        arena.close();
    }

    private FrontedTier open() {
        return new FrontedTier("front", side -> opened(side, disks), side -> opened(side, fronts), store, parked);
    }

    private static HeldFront opened(TierListener side, List<HeldFront> among) {
        among.add(new HeldFront(side));
        return among.getLast();
    }

    private void write(FrontedTier tier) {
        TierBlock block = new TierBlock(1, 1, 0, 0, 3, false, 0, 5000, 0, 0);
        MemorySegment slot = arena.allocate(8192, 4096);
        assertThat(tier.write(block, List.of(slot), 1)).isEqualTo(SubmitResult.ACCEPTED);
    }

    @Test
    void givenAFrontThatSomebodyUses_whenItsDiskFailedAndIsOpenedAgain_thenItServesAndTheFrontComesLater() {
        FrontedTier first = open();
        fronts.getFirst().inUse = true;
        first.leave();
        assertThat(disks.getFirst().closed).isEqualTo(1);
        assertThat(fronts.getFirst().closed).isZero();

        FrontedTier second = open();
        write(second);
        disks.getLast().held = false;
        second.tick(1, 0);
        assertThat(store.places).containsKey(1L);
        assertThat(fronts).as("none is opened over one that is used").hasSize(1);
        assertThatIllegalStateException().isThrownBy(parked::close).withMessage("somebody reads there");

        fronts.getFirst().inUse = false;
        second.tick(1 + 2 * Front.FIRST_PAUSE_NANOS, 0);
        assertThat(fronts.getFirst().closed).isEqualTo(1);
        assertThat(fronts).hasSize(2);
        second.close();
        parked.close();
        assertThat(fronts.getLast().closed).isEqualTo(1);
        assertThat(disks.getLast().closed).isEqualTo(1);
    }

    @Test
    void givenAFrontWithSomethingOnItsWay_whenItsDiskFailed_thenItIsClosedLaterAndNotParked() {
        FrontedTier tier = open();
        write(tier);
        HeldFront front = fronts.getFirst();
        front.inUse = true;
        assertThatIllegalStateException().isThrownBy(tier::leave).withMessage("somebody reads there");
        front.inUse = false;
        front.held = false;
        tier.tick(1, 0);
        tier.leave();
        assertThat(front.closed).isEqualTo(1);
        assertThat(disks.getFirst().closed).isEqualTo(1);
    }
}
