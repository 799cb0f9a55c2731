package io.kvcache.server;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.stats.TierTransferStats;
import io.kvcache.core.tier.TierState;
import io.kvcache.core.tier.TierStats;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;

final class ProblemDigestTest {

    private static TierTransferStats disk(long readErrors, long checksumErrors, long writesFailed) {
        TierStats tier = new TierStats(
                "", 0, 0, 0, writesFailed, 0, 0, readErrors, checksumErrors, 0, 0, 0, TierStats.Coding.NONE);
        TierTransferStats.Latency none = new TierTransferStats.Latency(0, 0, 0, 0, 0, List.of());
        return new TierTransferStats(
                "disk /mnt/kv", TierState.SERVING, "", tier, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, none, none, 0);
    }

    @Test
    void givenADiskThatServesOn_whenSomeOfItsReadsFail_thenThatIsTold() {
        AtomicReference<TierTransferStats> now = new AtomicReference<>(disk(1, 0, 0));
        ProblemDigest report = new ProblemDigest();
        report.watchDisks(() -> List.of(now.get()));
        assertThat(report.newProblems()).isEmpty();
        now.set(disk(2, 38, 0));
        assertThat(report.newProblems())
                .containsExactly("1 reads failed at disk /mnt/kv", "38 reads with a wrong checksum from disk /mnt/kv");
        now.set(disk(0, 0, 3)); // opened again, where the counts begin anew
        assertThat(report.newProblems()).containsExactly("3 writes failed at disk /mnt/kv");
    }

    @Test
    void givenAReasonOfItsTime_whenTheCountGrows_thenTheLineEndsWithIt() {
        AtomicLong failed = new AtomicLong();
        ProblemDigest report = new ProblemDigest();
        report.watch("handshakes failed, the last at ", () -> "a:1: why", failed::get);
        failed.incrementAndGet();
        assertThat(report.newProblems()).containsExactly("1 handshakes failed, the last at a:1: why");
    }

    @Test
    void givenCounts_whenSomeHaveGrown_thenThoseAreToldWithWhatWasAdded() {
        AtomicLong refused = new AtomicLong(7);
        AtomicLong cut = new AtomicLong();
        ProblemDigest report = new ProblemDigest();
        report.watch("values found no room", refused::get);
        report.watch("connections were cut", cut::get);
        assertThat(report.newProblems()).isEmpty();
        refused.addAndGet(5);
        assertThat(report.newProblems()).containsExactly("5 values found no room");
        assertThat(report.newProblems()).isEmpty();
        refused.incrementAndGet();
        cut.incrementAndGet();
        assertThat(report.newProblems()).containsExactly("1 values found no room", "1 connections were cut");
    }
}
