package io.kvcache.planner.trace;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.planner.trace.TraceGenerator.Workload;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@Tag("slow")
final class TraceGeneratorTest {

    /// Compares the ids as arrays: by reflection, hundreds of thousands of them take half a minute.
    static final Comparator<TraceRequest> BY_EVERY_FIELD = Comparator.comparingLong(TraceRequest::timestampMillis)
            .thenComparingInt(TraceRequest::inputTokens)
            .thenComparingInt(TraceRequest::outputTokens)
            .thenComparingLong(TraceRequest::session)
            .thenComparing(TraceRequest::hashIds, Arrays::compare);

    private static final Trace TRACE = new TraceGenerator(Workload.mixed(), 17).generate("generated:17", 3000);

    @Test
    void givenOneSeed_whenGeneratedTwice_thenTheSameTrace() {
        Trace again = new TraceGenerator(Workload.mixed(), 17).generate("generated:17", 3000);
        assertThat(again.requests()).usingElementComparator(BY_EVERY_FIELD).containsExactlyElementsOf(TRACE.requests());
        Trace other = new TraceGenerator(Workload.mixed(), 18).generate("generated:18", 3000);
        assertThat(other.totals()).isNotEqualTo(TRACE.totals());
    }

    @Test
    void givenGeneratedTrace_whenItsIdsAreFollowed_thenEachHasOneParentAndPlace() {
        Map<Long, Long> parents = new HashMap<>();
        for (TraceRequest request : TRACE.requests()) {
            long parent = -1;
            for (long id : request.hashIds()) {
                Long known = parents.putIfAbsent(id, parent);
                assertThat(known == null ? parent : known).isEqualTo(parent);
                parent = id;
            }
        }
        assertThat(parents).hasSize((int) TRACE.totals().distinctBlocks());
    }

    @Test
    void givenGeneratedTrace_whenItsTimesAreRead_thenTheyNeverGoBack() {
        assertThat(TRACE.requests()).extracting(TraceRequest::timestampMillis).isSorted();
    }

    @Test
    void givenGeneratedTrace_whenReuseIsCounted_thenItLooksLikeTraffic() {
        Trace.Totals totals = TRACE.totals();
        double reused = 1 - (double) totals.distinctBlocks() / totals.blockAccesses();
        assertThat(reused).isBetween(0.4, 0.95);
    }

    @Test
    void givenImpossibleWorkload_whenConstructed_thenTheErrorNamesValueAndRange() {
        Workload good = Workload.mixed();
        assertThatThrownBy(() -> new Workload(1, 10, 1, 1.5, good.chat(), good.agent(), good.sessionGapMillis(), 100))
                .hasMessageContaining("agentShare is 1.5")
                .hasMessageContaining("from 0 to 1");
    }
}
