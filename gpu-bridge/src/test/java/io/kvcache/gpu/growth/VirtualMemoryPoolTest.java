package io.kvcache.gpu.growth;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.kvcache.core.check.BlockContent;
import io.kvcache.core.contract.Pause;
import io.kvcache.gpu.cuda.FakeCuda;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceDriver.Priority;
import io.kvcache.gpu.driver.DeviceError;
import io.kvcache.gpu.driver.DeviceEvent;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.driver.DeviceStream;
import io.kvcache.gpu.driver.VirtualMemory;
import io.kvcache.gpu.host.FakeDeviceDriver;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

final class VirtualMemoryPoolTest {

    private static final int STEPS = 10_000;
    private static final int SPANS = 12;
    private static final int MAX_PAGES = 40;
    private static final int SLACK_PAGES = 5;
    private static final long LONG_NANOS = TimeUnit.SECONDS.toNanos(30);

    private final FakeCuda fakeCuda = FakeCuda.reset();
    private final Arena arena = Arena.ofShared();
    private DeviceDriver driver;
    private DeviceStream stream;
    private DeviceEvent event;
    private VirtualMemory memory;
    private long page;

    @SuppressWarnings("NullAway.Init") // opened before each test
    VirtualMemoryPoolTest() {}

    @BeforeEach
    void open() {
        driver = fakeCuda.open();
        stream = driver.openStream(Priority.NORMAL);
        event = driver.openEvent();
        memory = driver.virtualMemory();
        page = memory.pageBytes();
    }

    @AfterEach
    void close() {
        fakeCuda.release();
        stream.close();
        event.close();
        driver.close();
        assertThat(fakeCuda.left()).isEmpty();
        arena.close();
    }

    private void finish() {
        stream.record(event);
        assertThat(event.await(LONG_NANOS)).isTrue();
    }

    /// A sequence as it should be: of each byte at the end of a page's first KiB it is known what is in
    /// it.
    private final class TestSequence {

        private static final int MARK = 1024;

        private final GrowableBuffer span;
        private final MemorySegment marks = arena.allocate((long) MARK * MAX_PAGES);
        private final MemorySegment back = arena.allocate(MARK);
        private long bytes;
        private int seed;

        TestSequence(GrowableBuffer span) {
            this.span = span;
        }

        private long pages() {
            return (bytes + page - 1) / page;
        }

        private MemorySegment mark(long index) {
            return marks.asSlice(index * MARK, MARK);
        }

        boolean grow(long newBytes) {
            long before = pages();
            if (!span.grow(newBytes)) {
                return false;
            }
            bytes = newBytes;
            for (long index = before; index < pages(); index++) {
                new BlockContent(span.address().value() + seed++).fill(mark(index));
                long length = Math.min(MARK, bytes - index * page);
                stream.copyToDevice(
                        mark(index).asSlice(0, length), span.address().plus(index * page));
            }
            finish();
            return true;
        }

        void shrink(long newBytes) {
            span.shrink(newBytes);
            bytes = newBytes;
        }

        /// Looks at one page, as far as it was written.
        void check(long index) {
            if (index < pages()) {
                long length = Math.min(1, bytes - index * page);
                stream.copyToHost(span.address().plus(index * page), back.asSlice(0, length));
                finish();
                assertThat(back.asSlice(0, length).mismatch(mark(index).asSlice(0, length)))
                        .isEqualTo(-1);
            }
        }
    }

    @ParameterizedTest
    @CsvSource({"1,false", "2,true"})
    @Tag("slow")
    void givenRandomSteps_whenSpansGrowAndShrink_thenTheModelAgreesAndMemoryIsWhatIsNeeded(long seed, boolean beside) {
        DeviceDriver mapping = beside ? fakeCuda.open() : null;
        VirtualMemoryPool pool = new VirtualMemoryPool(memory, MAX_PAGES * page, SLACK_PAGES * page, mapping);
        List<TestSequence> sequences = new ArrayList<>();
        Random random = new Random(seed);
        int refused = 0;
        for (int step = 0; step < STEPS; step++) {
            if (sequences.size() < SPANS && random.nextInt(20) == 0) {
                sequences.add(new TestSequence(pool.open(MAX_PAGES * page)));
            }
            if (!sequences.isEmpty()) {
                refused += step(sequences, random) ? 0 : 1;
            }
            pool.tick(random.nextInt(3));
            long needed = sequences.stream().mapToLong(TestSequence::pages).sum() * page;
            assertThat(pool.physicalBytes()).isBetween(needed, Math.min(MAX_PAGES * page, needed + pool.slackBytes()));
        }
        assertThat(refused).as("steps for which there was no memory").isBetween(100, STEPS / 2);
        sequences.forEach(sequence -> sequence.span.close());
        pool.close();
    }

    /// Answers whether there was memory.
    private boolean step(List<TestSequence> sequences, Random random) {
        TestSequence any = sequences.get(random.nextInt(sequences.size()));
        sequences.get(random.nextInt(sequences.size())).check(random.nextInt(8));
        switch (random.nextInt(20)) {
            case 0 -> {
                any.span.close();
                sequences.remove(any);
            }
            case 1, 2, 3, 4, 5, 6, 7 -> any.shrink((long) (random.nextDouble() * any.bytes));
            default -> {
                long more = (long) (random.nextDouble() * 3 * page);
                long wanted = Math.min(any.bytes + more, MAX_PAGES * page);
                boolean grown = any.grow(wanted);
                long all = sequences.stream().mapToLong(TestSequence::pages).sum() - any.pages();
                assertThat(grown || all + (wanted + page - 1) / page > MAX_PAGES)
                        .as("it is refused only what there is not")
                        .isTrue();
                return grown;
            }
        }
        return true;
    }

    @Test
    void givenGrowth_whenACopyCrossesPages_thenTheyAreOneRun() {
        VirtualMemoryPool pool = new VirtualMemoryPool(memory, MAX_PAGES * page, 0);
        GrowableBuffer span = pool.open(4 * page);
        assertThat(span.grow(page + 1)).isTrue();
        assertThat(span.grow(3 * page)).isTrue();
        MemorySegment content = arena.allocate(2 * page);
        new BlockContent(1).fill(content);
        stream.copyToDevice(content, span.address().plus(page / 2));
        MemorySegment back = arena.allocate(2 * page);
        stream.copyToHost(span.address().plus(page / 2), back);
        finish();
        new BlockContent(1).requireEqual(back);
        assertThatExceptionOfType(DeviceException.class)
                .isThrownBy(() -> stream.copyToDevice(content, span.address().plus(page + page / 2)))
                .satisfies(beyond -> assertThat(beyond.error()).isEqualTo(DeviceError.BAD_REQUEST));
        span.close();
        pool.close();
    }

    /// The driver does not wait before it unmaps: a copy that comes later finds nothing there.
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void givenACopyOnItsWay_whenItsPageGoesToAnotherSpan_thenOnlyBehindTheCopy(boolean closed) throws Exception {
        assumeThat(fakeCuda.canHold())
                .as("a driver whose copies can be held back")
                .isTrue();
        VirtualMemoryPool pool = new VirtualMemoryPool(memory, 2 * page, 2 * page);
        GrowableBuffer one = pool.open(2 * page);
        GrowableBuffer two = pool.open(2 * page);
        assertThat(one.grow(2 * page)).isTrue();
        DeviceStream copying = driver.openStream(Priority.NORMAL);
        fakeCuda.hold();
        copying.copyToDevice(arena.allocate(page), one.address().plus(page));
        if (closed) {
            copying.close();
        }
        one.shrink(page);
        Thread releasing = releaseAfter(looks() + 3, fakeCuda.calls("cuMemMap"));
        assertThat(two.grow(page)).isTrue();
        releasing.join();
        finish();
        if (!closed) {
            copying.close();
        }
        one.close();
        two.close();
        pool.close();
    }

    private long looks() {
        return fakeCuda.calls("cuStreamQuery") + fakeCuda.calls("cuEventQuery");
    }

    /// Once somebody has looked so often whether all is done, or has not cared and mapped something.
    private Thread releaseAfter(long looks, long maps) {
        return Thread.ofPlatform().start(() -> {
            long since = System.nanoTime();
            while (looks() < looks && fakeCuda.calls("cuMemMap") == maps && System.nanoTime() - since < LONG_NANOS) {
                Pause.briefly();
            }
            fakeCuda.release();
        });
    }

    @Test
    void givenAPageMappedAhead_whenTheSpanGrowsIntoIt_thenTheDriverIsNotAsked() {
        assumeThat(fakeCuda.canHold())
                .as("a driver whose copies can be held back")
                .isTrue();
        VirtualMemoryPool pool = new VirtualMemoryPool(memory, MAX_PAGES * page, 2 * page);
        GrowableBuffer span = pool.open(10 * page);
        assertThat(span.grow(1)).isTrue();
        assertThat(pool.tick(1)).isEqualTo(1);
        long calls = fakeCuda.calls();
        assertThat(span.grow(2 * page)).isTrue();
        assertThat(fakeCuda.calls()).isEqualTo(calls);
        span.shrink(0);
        assertThat(fakeCuda.calls()).isEqualTo(calls);
        assertThat(pool.physicalBytes()).isEqualTo(2 * page);
        span.close();
        pool.close();
    }

    @Test
    void givenAThreadThatMaps_whenASpanGrows_thenItsNextPageIsMappedWithoutATickAndTakenOver() {
        assumeThat(fakeCuda.canHold())
                .as("a driver whose copies can be held back")
                .isTrue();
        VirtualMemoryPool pool = new VirtualMemoryPool(memory, MAX_PAGES * page, page, fakeCuda.open());
        GrowableBuffer span = pool.open(2 * page);
        assertThat(span.grow(1)).isTrue();
        assertThat(pool.physicalBytes()).isEqualTo(2 * page);
        long since = System.nanoTime();
        while (fakeCuda.calls("cuMemSetAccess") < 2) {
            assertThat(System.nanoTime() - since).isLessThan(LONG_NANOS);
            Pause.briefly();
        }
        long maps = fakeCuda.calls("cuMemMap");
        assertThat(span.grow(2 * page)).isTrue();
        assertThat(fakeCuda.calls("cuMemMap")).isEqualTo(maps);
        MemorySegment content = arena.allocate(2 * page);
        new BlockContent(2).fill(content);
        MemorySegment back = arena.allocate(2 * page);
        stream.copyToDevice(content, span.address());
        stream.copyToHost(span.address(), back);
        finish();
        new BlockContent(2).requireEqual(back);
        span.close();
        pool.close();
        assertThat(driver.resourceCounts().virtual()).isZero();
    }

    @ParameterizedTest
    @ValueSource(strings = {"cuMemCreate", "cuMemMap", "cuMemSetAccess"})
    void givenAPageThatIsNotMapped_whenTheSpanNeedsIt_thenItIsMappedByTheOwner(String call) {
        assumeThat(fakeCuda.canHold())
                .as("a driver whose calls can be made to fail")
                .isTrue();
        VirtualMemoryPool pool = new VirtualMemoryPool(memory, MAX_PAGES * page, page, fakeCuda.open());
        GrowableBuffer span = pool.open(2 * page);
        fakeCuda.failCall(call, 2, 2);
        assertThat(span.grow(1)).isTrue();
        assertThat(span.grow(2 * page)).isTrue();
        assertThat(fakeCuda.injected()).isEqualTo(1);
        assertThat(pool.physicalBytes()).isEqualTo(2 * page);
        span.close();
        pool.close();
        assertThat(driver.resourceCounts().virtual()).isZero();
    }

    @Test
    void givenAFaultAtEachCallInTurn_whenGrowing_thenNothingIsLost() {
        assumeThat(fakeCuda.canHold())
                .as("a driver whose copies can be held back")
                .isTrue();
        Logger.getLogger("io.kvcache.gpu").setLevel(Level.OFF);
        int faults = 0;
        for (int nth = 1; nth < STEPS; nth++) {
            fakeCuda.failCall("", nth, 2);
            long before = fakeCuda.injected();
            VirtualMemoryPool pool = new VirtualMemoryPool(memory, MAX_PAGES * page, page);
            try {
                grow(pool);
            } catch (DeviceException refused) {
                assertThat(refused.error()).isEqualTo(DeviceError.OUT_OF_MEMORY);
            }
            assertThat(driver.resourceCounts().virtual())
                    .as("after a fault at call %d", nth)
                    .isZero();
            if (fakeCuda.injected() == before) {
                break;
            }
            faults++;
        }
        Logger.getLogger("io.kvcache.gpu").setLevel(null);
        System.out.printf("growth faults injected: %d calls%n", faults);
        assertThat(faults).isGreaterThan(20);
        // What could not be given back by itself goes with the device, see close().
    }

    private static void grow(VirtualMemoryPool pool) {
        GrowableBuffer one = null;
        GrowableBuffer two = null;
        try {
            one = pool.open(1 << 24);
            two = pool.open(1 << 24);
            boolean grown = one.grow(6 << 20) && two.grow(6 << 20);
            one.shrink(Math.min(1, one.bytes()));
            assertThat(grown).isEqualTo(one.bytes() == 1 && two.bytes() > 0);
            pool.tick(1);
            two.grow(8 << 20);
            assertThat(two.bytes()).isIn(0L, 6L << 20, 8L << 20);
        } finally {
            if (two != null) {
                two.close();
            }
            if (one != null) {
                one.close();
            }
            pool.close();
        }
    }

    @Test
    void givenSizesThatAreNone_whenAsked_thenRefused() {
        VirtualMemoryPool pool = new VirtualMemoryPool(memory, page, 0);
        GrowableBuffer span = pool.open(page);
        assertThatIllegalArgumentException().isThrownBy(() -> span.grow(page + 1));
        assertThatIllegalArgumentException().isThrownBy(() -> span.shrink(1));
        assertThatIllegalArgumentException().isThrownBy(() -> pool.open(0));
        assertThatIllegalArgumentException().isThrownBy(() -> new VirtualMemoryPool(memory, page - 1, 0));
        assertThatIllegalArgumentException().isThrownBy(() -> memory.reserve(page + 1));
        assertThatIllegalStateException().isThrownBy(pool::close).withMessageContaining("1 spans are open");
        span.close();
        span.close();
        pool.close();
        pool.close();
        FakeDeviceDriver host = FakeDeviceDriver.open(1);
        assertThatExceptionOfType(DeviceException.class).isThrownBy(host::virtualMemory);
        host.close();
    }
}
