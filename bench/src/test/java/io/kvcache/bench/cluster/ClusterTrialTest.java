package io.kvcache.bench.cluster;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.bench.cluster.ClusterReplay.Progress;
import io.kvcache.bench.cluster.ClusterTrial.Run;
import io.kvcache.bench.replay.BlockCountingRule;
import io.kvcache.bench.replay.PrefixForest;
import io.kvcache.bench.trace.Trace;
import io.kvcache.bench.trace.TraceGenerator;
import io.kvcache.bench.trace.Workload;
import io.kvcache.transport.cluster.ReplicaPolicy;
import java.time.Duration;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// Three server processes, one of which is killed and started again while clients read and write.
@Tag("slow")
@Timeout(300)
final class ClusterTrialTest {

    @Test
    void givenClientsOfACluster_whenAServerIsKilledAndStartedAgain_thenTheyLoseNothingButHits() throws Exception {
        Trace trace = new TraceGenerator(Workload.mixed(), 1).generate("generated:1", 1_000);
        PrefixForest forest = new PrefixForest(trace, BlockCountingRule.FULL_BLOCKS);
        ClusterTrial trial = new ClusterTrial(
                forest,
                new ClusterReplay.Settings(3, 70, 4 << 10, ClientTransport.TCP),
                3,
                128L << 20,
                Duration.ZERO,
                ReplicaPolicy.HEAT);

        Run run = trial.run(TrialScenario.RESTART, 0, true);

        Progress progress = run.progress();
        assertThat(run.firstError()).isNull();
        assertThat(progress.errors()).isZero();
        assertThat(progress.wrong()).isZero();
        assertThat(progress.requests()).isEqualTo(1_000);
        assertThat((double) progress.found() / progress.possible())
                .as("hits, of what an unlimited cache finds")
                .isBetween(0.5, 1.05);
    }
}
