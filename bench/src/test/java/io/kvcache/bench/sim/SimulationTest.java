package io.kvcache.bench.sim;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// The first seeds of `./kvcache sim`, with shorter runs: clean, the same each time, and rare things
/// happen.
final class SimulationTest {

    private static final int SEEDS = 100;
    private static final int STEPS = 120;

    @Test
    void givenSeeds_whenRunTwice_thenCleanAndEqualAndRareBranchesWereTaken() {
        RareCounts seen = new SimSuite(STEPS).run(1, SEEDS, _ -> {});
        assertThat(seen.all()).containsKeys(RARE);
    }

    /// In a pool without a record to stand in, what a disk has told of stays below a record that is doomed.
    @Test
    void givenADoomedParentAmongWhatIsDropped_whenItsLastChildGoes_thenItIsFreedOnce() {
        assertThat(new SimSuite(400).run(1681, 1, _ -> {}).all()).containsKey("namespace dropped");
    }

    /// A disk that is taken out forgets what it has, also below a doomed record. It went round for ever.
    @Test
    @Timeout(value = 600, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
    void givenADoomedParentAmongWhatADiskForgets_whenItsLastChildGoes_thenItIsFreedOnce() {
        assertThat(new SimSuite(400).run(1707, 1, _ -> {}).all()).containsKey("orphans");
    }

    /// What so many seeds must have seen.
    private static final String[] RARE = {
        "DISK DROPPED",
        "DISK EVICTED",
        "DISK REPLACED",
        "HOST DROPPED",
        "HOST EVICTED",
        "HOST REPLACED",
        "block arrived in a table",
        "chain dropped",
        "close",
        "crash when FAILED",
        "crash when READ_ONLY",
        "crash when SERVING",
        "crash while recovering",
        "disk discarded",
        "disk out and back",
        "flush durable",
        "flush not durable",
        "kept at reclaim",
        "load cancelled",
        "loaded",
        "more found than records",
        "namespace dropped",
        "object dropped",
        "object put NO_ROOM",
        "object put or dropped after it left the disk",
        "object read with a time-out",
        "objects dropped",
        "opening refused when FAILED",
        "opening refused when REFUSED",
        "orphans",
        "promise kept",
        "put BUSY",
        "put NO_PARENT",
        "put NO_ROOM",
        "put PRESENT",
        "put abandoned",
        "read failed",
        "reclaimed",
        "restored",
        "sacrificed",
        "sealed DROPPED",
        "sealed PENDING",
        "slab moved",
        "superseded",
        "table closed while blocks come",
        "table ends before its chain",
        "write failed",
        "write in vain",
        "write queue full"
    };
}
