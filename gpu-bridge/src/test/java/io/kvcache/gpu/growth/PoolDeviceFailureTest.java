package io.kvcache.gpu.growth;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.kvcache.gpu.cuda.FakeCuda;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceDriver.Priority;
import io.kvcache.gpu.driver.DeviceEvent;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.DeviceStream;
import io.kvcache.gpu.driver.VirtualMemory;
import io.kvcache.gpu.driver.VirtualMemory.PhysicalPages;
import java.lang.foreign.Arena;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// What becomes of mapped pages when a device or its driver fails.
final class PoolDeviceFailureTest {

    private final FakeCuda fakeCuda = FakeCuda.reset();
    private final Arena arena = Arena.ofShared();
    private final DeviceDriver driver = fakeCuda.open();
    private final DeviceStream stream = driver.openStream(Priority.NORMAL);
    private final VirtualMemory memory = driver.virtualMemory();
    private final long page = memory.pageBytes();

    @AfterEach
    void close() {
        fakeCuda.release();
        stream.close();
        driver.close();
        assertThat(fakeCuda.left()).isEmpty();
        arena.close();
    }

    @Test
    void givenADeviceThatFails_whenASpanIsClosed_thenThePoolCanBeClosedAndTheRestGoesWithTheDriver() {
        assumeThat(fakeCuda.canHold()).as("a driver that fails when told to").isTrue();
        Logger.getLogger("io.kvcache.gpu").setLevel(Level.OFF);
        VirtualMemoryPool pool = new VirtualMemoryPool(memory, 4 * page, 0);
        GrowableBuffer span = pool.open(4 * page);
        assertThat(span.grow(2 * page)).isTrue();
        fakeCuda.failTwice("cuStreamQuery", 46);
        assertThatExceptionOfType(DeviceException.class).isThrownBy(span::close);
        span.close();
        pool.close();
        assertThat(driver.resourceCounts().virtual())
                .as("a range and two pages, mapped")
                .isEqualTo(5);
        Logger.getLogger("io.kvcache.gpu").setLevel(null);
    }

    @Test
    void givenASecondDriverThatStillHasSomething_whenThePoolIsClosed_thenItsPagesAreGivenBackAllTheSame() {
        assumeThat(fakeCuda.canHold()).as("a driver that counts what it has").isTrue();
        DeviceDriver beside = fakeCuda.open();
        VirtualMemoryPool pool = new VirtualMemoryPool(memory, 4 * page, 4 * page, beside);
        beside.allocate(1);
        GrowableBuffer span = pool.open(4 * page);
        assertThat(span.grow(2 * page)).isTrue();
        span.close();
        assertThat(pool.physicalBytes()).isPositive();
        assertThatIllegalStateException().isThrownBy(pool::close).withMessageContaining("before all was given back");
        assertThat(driver.resourceCounts().virtual()).isZero();
    }

    /// The pool's thread has bound the other driver last.
    @Test
    void givenADeviceThatLetsNobodyInOnce_whenAPoolIsClosed_thenAllItsPagesAreGivenBack() {
        assumeThat(fakeCuda.canHold()).as("a driver that fails when told to").isTrue();
        VirtualMemoryPool pool = new VirtualMemoryPool(memory, 4 * page, 4 * page, fakeCuda.open());
        GrowableBuffer span = pool.open(4 * page);
        assertThat(span.grow(3 * page)).isTrue();
        span.close();
        assertThat(driver.resourceCounts().virtual()).isGreaterThanOrEqualTo(3);
        fakeCuda.failCall("cuCtxSetCurrent", 2, 2); // the first is the other driver's
        pool.close();
        assertThat(fakeCuda.injected()).isEqualTo(1);
        assertThat(driver.resourceCounts().virtual()).isZero();
    }

    /// A refusal to take something back says nothing of the copies that are on their way.
    @Test
    void givenADriverThatRefusedToTakeAnEventBack_whenAPageIsUnmapped_thenCopiesToItAreStillWaitedFor() {
        assumeThat(fakeCuda.canHold()).as("a driver that is late when told to").isTrue();
        Logger.getLogger("io.kvcache.gpu").setLevel(Level.OFF);
        DeviceSpan range = memory.reserve(page);
        PhysicalPages pages = memory.create(page);
        memory.map(range.address(), pages);
        DeviceEvent other = driver.openEvent();
        fakeCuda.failCall("cuEventDestroy_v2", 1, 1);
        other.close();
        assertThat(fakeCuda.injected()).isEqualTo(1);
        fakeCuda.delay(1_000_000);
        stream.copyToDevice(arena.allocate(4096), range.address());
        assertThat(stream.isIdle()).as("the copy comes later").isFalse();
        memory.unmap(range.address(), pages);
        assertThat(stream.isIdle()).isTrue();
        memory.release(pages);
        memory.unreserve(range);
        Logger.getLogger("io.kvcache.gpu").setLevel(null);
    }

    /// This test's own driver keeps the context, with which all would go otherwise.
    @Test
    void givenMappingsLeft_whenTheDeviceCloses_thenItSaysSoAndGivesThemBack() {
        assumeThat(fakeCuda.canHold()).as("a driver that counts what it has").isTrue();
        String before = fakeCuda.left();
        DeviceDriver other = fakeCuda.open();
        VirtualMemory left = other.virtualMemory();
        DeviceSpan range = left.reserve(2 * page);
        left.map(range.address(), left.create(page));
        assertThatIllegalStateException().isThrownBy(other::close).withMessageContaining("virtual=3");
        assertThat(fakeCuda.left()).isEqualTo(before);
    }
}
