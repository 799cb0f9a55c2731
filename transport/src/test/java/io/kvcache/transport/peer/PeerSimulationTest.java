package io.kvcache.transport.peer;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.contract.Repetitions;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// Embedded stores over peers with bad weather, seed by seed, each exactly as often as it is wanted.
///
/// **What is exact.** All of this package and the stores run as they do in production, on threads that take
/// turns and by a clock that only they move ([TurnScheduler]), so a seed decides who does what when: it can be had
/// again, with a debugger too. A seed runs twice here and must end the same.
///
/// **What is not here.** Connections, frames and the client of a server: a double takes their place
/// ([SimPeerCache]). They have threads and clocks of their own; `io.kvcache.transport.sim` runs them in
/// weather, seed by seed, not exactly. A thread can lose its turn only where it waits, sleeps, reads the
/// clock or hands something to another, there sometimes for a while: not between any two instructions.
///
/// They begin at another seed each time, which is printed. More of them: `./mvnw verify -pl
/// kvcache-core,tiers,transport -Dtest=PeerSimulationTest
/// -Dsurefire.failIfNoSpecifiedTests=false -Dkvcache.transport.peers.seeds=1000`; one:
/// `-Dkvcache.transport.peers.seeds=1 -Dkvcache.transport.peers.first=SEED`.
@Timeout(900)
final class PeerSimulationTest {

    /// From so many seeds on, each rare event must have come.
    private static final int COVERING_SEEDS = 20;

    /// Wrong blocks come about four times in fifty seeds: so many that miss them are no bad luck.
    private static final int MAX_SEEDS = 500;

    private static final int SEEDS = Repetitions.of("kvcache.transport.peers.seeds", 4, 200);
    private static final long FIRST = Long.getLong(
            "kvcache.transport.peers.first", ThreadLocalRandom.current().nextLong(1, 1_000_000_000));

    private final Logger log = Logger.getLogger(Peer.class.getName());

    @BeforeEach
    void quiet() {
        log.setLevel(Level.OFF);
    }

    @AfterEach
    void loud() {
        log.setLevel(null);
    }

    @Test
    @Tag("slow")
    void givenBadWeather_whenStoresUseTheirPeers_thenEachSeedEndsWellAndTheSameTwice() throws InterruptedException {
        System.out.println("peers of " + SEEDS + " seeds from " + FIRST + " on");
        PeerSimulation.PeerEventCounts peerEventCounts = new PeerSimulation.PeerEventCounts();
        long start = System.nanoTime();
        long seed = FIRST;
        for (;
                seed < FIRST + SEEDS || (SEEDS >= COVERING_SEEDS && !all(peerEventCounts) && seed < FIRST + MAX_SEEDS);
                seed++) {
            long trace = one(seed, peerEventCounts);
            assertThat(one(seed, new PeerSimulation.PeerEventCounts()))
                    .as("seed %d, run again", seed)
                    .isEqualTo(trace);
        }
        System.out.printf(
                "%d seeds twice in %d ms: %d blocks of peers, %d wrong ones thrown away, %d gets cut short%n",
                seed - FIRST,
                TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - start),
                peerEventCounts.found,
                peerEventCounts.tampered,
                peerEventCounts.shorter);
        if (SEEDS >= COVERING_SEEDS) {
            assertThat(peerEventCounts.found).as("blocks of peers").isPositive();
            assertThat(peerEventCounts.lost).as("runs that were not given").isPositive();
            assertThat(peerEventCounts.tampered).as("wrong blocks").isPositive();
            assertThat(peerEventCounts.outages).as("outages").isPositive();
            assertThat(peerEventCounts.shorter).as("gets that were cut short").isPositive();
            assertThat(peerEventCounts.notReached)
                    .as("drops that did not reach all")
                    .isPositive();
        }
    }

    private static boolean all(PeerSimulation.PeerEventCounts peerEventCounts) {
        return peerEventCounts.found > 0
                && peerEventCounts.lost > 0
                && peerEventCounts.tampered > 0
                && peerEventCounts.outages > 0
                && peerEventCounts.shorter > 0
                && peerEventCounts.notReached > 0;
    }

    private static long one(long seed, PeerSimulation.PeerEventCounts peerEventCounts) throws InterruptedException {
        try {
            return new PeerSimulation(seed, peerEventCounts).run();
        } catch (AssertionError failed) {
            throw new AssertionError(
                    "seed " + seed + " failed; again with -Dkvcache.transport.peers.first=" + seed
                            + " -Dkvcache.transport.peers.seeds=1",
                    failed);
        }
    }
}
