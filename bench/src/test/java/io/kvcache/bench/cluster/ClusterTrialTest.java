package io.kvcache.bench.cluster;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.bench.cluster.ClusterReplay.Progress;
import io.kvcache.bench.cluster.ClusterTrial.Run;
import io.kvcache.bench.cluster.ClusterTrial.TrialScenario;
import io.kvcache.core.contract.Repetitions;
import io.kvcache.planner.replay.BlockCountingRule;
import io.kvcache.planner.replay.PrefixForest;
import io.kvcache.planner.trace.Trace;
import io.kvcache.planner.trace.TraceGenerator;
import io.kvcache.planner.trace.TraceGenerator.Workload;
import io.kvcache.transport.cluster.ReplicaPolicy;
import java.time.Duration;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// Three server processes, one of which is killed and started again while clients read and write.
@Tag("slow")
@Timeout(300)
final class ClusterTrialTest {

    private static final int REQUESTS = Repetitions.usualOrFull(500, 1_000);

    /// Requests a second: few enough that the server is back before the end of the trace.
    private static final double RATE = Repetitions.usualOrFull(35, 70);

    @Test
    void givenClientsOfACluster_whenAServerIsKilledAndStartedAgain_thenTheyLoseNothingButHits() throws Exception {
        Trace trace = new TraceGenerator(Workload.mixed(), 1).generate("generated:1", REQUESTS);
        PrefixForest forest = new PrefixForest(trace, BlockCountingRule.FULL_BLOCKS);
        ClusterTrial trial = new ClusterTrial(
                forest,
                new ClusterReplay.Settings(3, RATE, 4 << 10, ClientTransport.TCP),
                3,
                128L << 20,
                Duration.ZERO,
                ReplicaPolicy.HEAT);

        Run run = trial.run(TrialScenario.RESTART, 0, true);

        Progress progress = run.progress();
        assertThat(run.firstError()).isNull();
        assertThat(progress.errors()).isZero();
        assertThat(progress.wrong()).isZero();
        assertThat(progress.requests()).isEqualTo(REQUESTS);
        assertThat((double) progress.found() / progress.possible())
                .as("hits, of what an unlimited cache finds")
                .isBetween(0.5, 1.05);
    }
}
