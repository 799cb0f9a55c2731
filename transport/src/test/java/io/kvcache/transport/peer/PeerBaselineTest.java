package io.kvcache.transport.peer;

import io.kvcache.core.baseline.Baseline;
import java.util.ArrayList;
import java.util.List;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/// A hundred seeds of [PeerSimulationTest] take the course that was recorded. The network simulation
/// (`io.kvcache.transport.sim`) has no course to record, as its threads wait by the machine's clock.
@Tag(Baseline.TAG)
final class PeerBaselineTest {

    private static final int SEEDS = 100;

    @Test
    void givenRecordedSeeds_whenPlayed_thenTheyTakeTheSameCourse() throws InterruptedException {
        Logger log = Logger.getLogger(Peer.class.getName());
        log.setLevel(Level.OFF);
        List<String> courses = new ArrayList<>();
        try {
            for (long seed = 1; seed <= SEEDS; seed++) {
                PeerSimulation.PeerEventCounts peerEventCounts = new PeerSimulation.PeerEventCounts();
                long course = new PeerSimulation(seed, peerEventCounts).run();
                courses.add("%d %016x %d found, %d lost, %d cut short, %d drops not reached"
                        .formatted(
                                seed,
                                course,
                                peerEventCounts.found,
                                peerEventCounts.lost,
                                peerEventCounts.shorter,
                                peerEventCounts.notReached));
            }
        } finally {
            log.setLevel(null);
        }
        Baseline.compare(PeerBaselineTest.class, "peers.txt", courses);
    }
}
