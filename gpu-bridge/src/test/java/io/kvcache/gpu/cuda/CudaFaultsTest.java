package io.kvcache.gpu.cuda;

import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.kvcache.core.check.BlockContent;
import io.kvcache.gpu.driver.CopyBatch;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceDriver.Priority;
import io.kvcache.gpu.driver.DeviceError;
import io.kvcache.gpu.driver.DeviceEvent;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.DeviceStream;
import io.kvcache.gpu.kernel.GpuKernels;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.TimeUnit;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Every call of the driver fails once, each in turn, in a piece of work that uses them all: what is said
/// to be there is right, and nothing stays behind.
final class CudaFaultsTest {

    private static final int PIECE = 8192;
    private static final int PIECES = 16;
    private static final int MAX_CALLS = 10_000;

    private final FakeCuda fakeCuda = FakeCuda.reset();
    private final Arena arena = Arena.ofShared();
    private final Logger log = Logger.getLogger(CudaDriver.class.getName());
    private int faults;
    private int completed;

    @BeforeEach
    void onlyOnTheStandIn() {
        assumeThat(fakeCuda.canHold())
                .as("a driver whose copies can be held back")
                .isTrue();
        log.setLevel(Level.OFF);
    }

    @AfterEach
    void reset() {
        log.setLevel(null);
        FakeCuda.reset();
        arena.close();
    }

    /// Out of memory, a device that fell off the bus, damaged memory, something nobody knows.
    @ParameterizedTest
    @ValueSource(ints = {2, 46, 214, 999})
    void givenAFaultAtEachCallInTurn_whenWorking_thenNeverAWrongByteNorALeak(int code) {
        for (int nth = 1; nth < MAX_CALLS; nth++) {
            FakeCuda.reset().failCall("", nth, code);
            boolean done = attempt();
            assertThat(fakeCuda.left()).as("after a fault at call %d", nth).isEmpty();
            if (fakeCuda.injected() == 0) {
                assertThat(done).as("without a fault all is well").isTrue();
                break;
            }
            faults++;
            completed += done ? 1 : 0;
        }
        System.out.printf(
                "driver faults injected: %d calls answered %d, %d of them had no consequence%n",
                faults, code, completed);
        assertThat(faults).isGreaterThan(25);
    }

    /// What a list of places has, nobody looks at before; a CPU would read there all the same.
    @Test
    void givenAPieceAtAnOddPlace_whenAKernelCopiesIt_thenTheDeviceIsOfNoUse() {
        FakeCuda.reset();
        try (Work work = new Work(CudaDriver.open(0))) {
            DeviceSpan slab = work.driver.allocate(PIECE);
            DeviceStream stream = work.driver.openStream(Priority.NORMAL);
            DeviceEvent event = work.driver.openEvent();
            MemorySegment places = arena.allocate(JAVA_LONG, 2);
            places.setAtIndex(JAVA_LONG, 0, slab.address().value() + 1024 + 8);
            places.setAtIndex(JAVA_LONG, 1, slab.address().value() + 2048);
            stream.copyToDevice(places, slab.address());
            GpuKernels.load(work.driver, 1).copyPieces(stream, slab.slice(0, 8), slab.slice(8, 8), 16, 1);
            assertThatExceptionOfType(DeviceException.class) // by the one call or the other
                    .isThrownBy(() -> {
                        stream.record(event);
                        event.await(TimeUnit.SECONDS.toNanos(30));
                    })
                    .satisfies(refused -> assertThat(refused.error()).isEqualTo(DeviceError.ILLEGAL_ACCESS));
        }
    }

    private boolean attempt() {
        try (Work work = new Work(CudaDriver.open(0))) {
            work.run();
            return true;
        } catch (DeviceException refused) {
            assertThat(refused).hasMessageContaining(refused.error().advice());
            return false;
        }
    }

    private final class Work implements AutoCloseable {

        private final DeviceDriver driver;

        Work(DeviceDriver driver) {
            this.driver = driver;
        }

        void run() {
            assertThat(driver.info().name()).isNotEmpty();
            assertThat(driver.freeMemoryBytes()).isPositive();
            DeviceSpan slab = driver.allocate(2L * PIECES * PIECE);
            MemorySegment source = arena.allocate((long) PIECES * PIECE, 4096);
            MemorySegment back = arena.allocate((long) PIECES * PIECE, 4096);
            new BlockContent(1).fill(source);
            driver.register(source);
            DeviceStream up = driver.openStream(Priority.HIGH);
            DeviceStream down = driver.openStream(Priority.NORMAL);
            DeviceEvent event = driver.openEvent();
            copy(slab, source, back, up, down, event);
            new BlockContent(1).requireEqual(back);
            event.close();
            up.close();
            down.close();
            driver.unregister(source);
            driver.free(slab);
        }

        private void copy(
                DeviceSpan slab,
                MemorySegment source,
                MemorySegment back,
                DeviceStream up,
                DeviceStream down,
                DeviceEvent event) {
            CopyBatch there = CopyBatch.toDevice();
            CopyBatch home = CopyBatch.toHost();
            for (int i = 0; i < PIECES; i++) {
                long place = (long) (PIECES - 1 - i) * PIECE;
                there.add(
                        source.asSlice((long) i * PIECE, PIECE), slab.address().plus(place));
                home.add(back.asSlice((long) i * PIECE, PIECE), slab.address().plus((long) PIECES * PIECE + place));
            }
            up.fill(slab, (byte) 0x77);
            up.copy(there);
            up.copyWithinDevice(slab.address(), slab.address().plus((long) PIECES * PIECE), (long) PIECES * PIECE);
            up.record(event);
            down.waitFor(event);
            down.copy(home);
            down.record(event);
            assertThat(event.await(TimeUnit.SECONDS.toNanos(30))).isTrue();
        }

        @Override
        public void close() {
            try {
                driver.close();
            } catch (IllegalStateException left) {
                assertThat(left).hasMessageContaining("before all was given back");
            }
        }
    }
}
