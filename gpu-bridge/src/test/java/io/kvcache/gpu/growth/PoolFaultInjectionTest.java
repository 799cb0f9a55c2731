package io.kvcache.gpu.growth;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.check.BlockContent;
import io.kvcache.gpu.cuda.FakeCuda;
import io.kvcache.gpu.cuda.FaultInjection;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceDriver.Priority;
import io.kvcache.gpu.driver.DeviceEvent;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.driver.DeviceStream;
import io.kvcache.gpu.driver.VirtualMemory;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// Every call of the driver fails once, each in turn, while sequences grow, shrink, and take pages
/// of each other, with pages mapped by the same thread and by another.
final class PoolFaultInjectionTest {

    private static final int MAX_PAGES = 6;
    private static final int MIN_CALLS = 30;
    private static final int MARK = 1024;
    private static final long LONG_NANOS = TimeUnit.SECONDS.toNanos(60);

    private final FakeCuda fakeCuda = FakeCuda.reset();
    private final Arena arena = Arena.ofShared();
    private final MemorySegment back = arena.allocate(MARK, 4096);

    @AfterEach
    void close() {
        FakeCuda.reset();
        assertThat(fakeCuda.left()).isEmpty();
        arena.close();
    }

    @ParameterizedTest
    @CsvSource({"2, false", "46, false", "999, false", "2, true", "46, true", "999, true"})
    @Tag("slow")
    void givenAFaultAtEachCallInTurn_whenGrowing_thenNeverAWrongByteNorALeak(int code, boolean byAThread)
            throws Exception {
        FaultInjection.assumePossible(fakeCuda);
        fakeCuda.delay(50);
        String what = byAThread ? "growth beside a thread" : "growth";
        FaultInjection.injectWithin(fakeCuda, what, code, MIN_CALLS, (driver, faultRun) -> {
            faultRun.begin();
            try {
                return pooled(driver, byAThread);
            } catch (DeviceException refused) {
                faultRun.expectFatal(refused);
                return false;
            }
        });
    }

    private boolean pooled(DeviceDriver driver, boolean byAThread) {
        VirtualMemory memory = driver.virtualMemory();
        long page = memory.pageBytes();
        DeviceDriver beside = byAThread ? fakeCuda.open() : null;
        VirtualMemoryPool pool;
        try {
            pool = new VirtualMemoryPool(memory, MAX_PAGES * page, 2 * page, beside);
        } catch (DeviceException refused) {
            if (beside != null) {
                FaultInjection.close(beside);
            }
            throw refused;
        }
        List<TestSequence> sequences = new ArrayList<>();
        try (PoolResources poolResources = new PoolResources(pool, sequences)) {
            TestSequence one = new TestSequence(poolResources.pool.open(4 * page), page, 1);
            sequences.add(one);
            TestSequence two = new TestSequence(poolResources.pool.open(8 * page), page, 2);
            sequences.add(two);
            return grow(driver, pool, one, two);
        }
    }

    /// The second takes what the first gave up.
    private boolean grow(DeviceDriver driver, VirtualMemoryPool pool, TestSequence one, TestSequence two) {
        try (DeviceStream stream = driver.openStream(Priority.NORMAL);
                DeviceEvent event = driver.openEvent()) {
            boolean all = one.grow(stream, 3) && two.grow(stream, 2);
            one.span.shrink(Math.min(one.span.bytes(), one.page));
            pool.tick(1);
            all &= two.grow(stream, 4);
            pool.tick(2);
            one.requireRight(stream, event);
            two.requireRight(stream, event);
            return all;
        }
    }

    /// Gives back all there is, as far as the device lets it.
    private record PoolResources(VirtualMemoryPool pool, List<TestSequence> sequences) implements AutoCloseable {

        @Override
        public void close() {
            DeviceException first = null;
            for (TestSequence sequence : sequences) {
                try {
                    sequence.span.close();
                } catch (DeviceException refused) {
                    first = refused;
                }
            }
            try {
                pool.close();
            } catch (IllegalStateException left) {
                assertThat(left).hasMessageContaining("before all was given back");
            }
            if (first != null) {
                throw first;
            }
        }
    }

    /// A span, and what the beginning of each of its pages has.
    private final class TestSequence {

        private final GrowableBuffer span;
        private final long page;
        private final long seed;

        TestSequence(GrowableBuffer span, long page, long seed) {
            this.span = span;
            this.page = page;
            this.seed = seed;
        }

        boolean grow(DeviceStream stream, int pages) {
            long before = span.bytes() / page;
            if (!span.grow(pages * page)) {
                return false;
            }
            for (long i = before; i < pages; i++) {
                MemorySegment mark = arena.allocate(MARK, 4096);
                new BlockContent(100 * seed + i).fill(mark);
                stream.copyToDevice(mark, span.address().plus(i * page));
            }
            return true;
        }

        void requireRight(DeviceStream stream, DeviceEvent event) {
            for (long i = 0; i < span.bytes() / page; i++) {
                stream.copyToHost(span.address().plus(i * page), back);
                stream.record(event);
                assertThat(event.await(LONG_NANOS)).isTrue();
                new BlockContent(100 * seed + i).requireEqual(back);
            }
        }
    }
}
