package io.kvcache.gpu.sequence;

import static io.kvcache.gpu.sequence.PagedEngine.LONG;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.contract.Repetitions;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.gpu.cuda.FakeCuda;
import io.kvcache.gpu.cuda.FaultInjection;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.sequence.PagedEngine.Request;
import io.kvcache.gpu.tier.CudaTier;
import io.kvcache.tiers.TieredKvCache;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.FieldSource;

/// Every call of the driver fails once, each in turn, while sequences share, fork, are preempted and resumed.
final class PagedFaultsTest {

    /// Code that ran where it may not, and out of memory.
    static final List<Integer> CODES = List.of(700, 2).subList(0, Repetitions.usualOrFull(2, 2));

    private static final int MIN_CALLS = 60;

    private final FakeCuda fakeCuda = FakeCuda.reset();

    @AfterEach
    void close() {
        FakeCuda.reset();
        assertThat(fakeCuda.left()).isEmpty();
    }

    @ParameterizedTest
    @FieldSource("CODES")
    @Tag("slow")
    void givenAFaultAtEachCallInTurn_whenSequencesRun_thenNeverAWrongRowNorALeak(int code) throws Exception {
        CudaTier tier = CudaTier.withDriver("GPU", fakeCuda::open, 4 << 20);
        FaultInjection.inject(fakeCuda, "paged sequences", code, MIN_CALLS, (nth, begin) -> {
            try (TieredKvCache cache = TieredKvCache.builder()
                    .hostBytes(32 << 20)
                    .prefaultInBackground(false)
                    .failOnLeak(true)
                    .admission(AdmissionKind.ALWAYS)
                    .tier(tier)
                    .build()) {
                begin.run();
                boolean done = attempt(cache, tier);
                cache.validate();
                return done;
            }
        });
    }

    private boolean attempt(TieredKvCache cache, CudaTier tier) {
        PagedEngine engine;
        try {
            engine = new PagedEngine(fakeCuda, cache, tier, 64);
        } catch (DeviceException refused) {
            return false;
        }
        try {
            run(engine);
            return true;
        } catch (DeviceException refused) {
            return false;
        } finally {
            engine.close();
        }
    }

    private static void run(PagedEngine engine) {
        int[] prompt = IntStream.range(0, 20).toArray();
        Request first = engine.begin(prompt);
        Request second = engine.begin(prompt);
        Request third = first.fork();
        assertThat(third.grow(1, 2, 3, 4, 5)).isTrue();
        assertThat(second.sequence.preempt(LONG)).isTrue();
        first.verify();
        third.verify();
        assertThat(second.sequence.resume(LONG)).isTrue();
        assertThat(second.catchUp()).isTrue();
        second.verify();
        first.close();
    }
}
