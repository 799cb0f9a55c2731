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
import io.kvcache.gpu.driver.PhysicalPages;
import io.kvcache.gpu.driver.VirtualMemory;
import java.lang.foreign.Arena;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// What becomes of mapped pages when a device or its driver fails.
final class GrowthFailureTest {

    private final FakeCuda standIn = FakeCuda.reset();
    private final Arena arena = Arena.ofShared();
    private final DeviceDriver driver = standIn.open();
    private final DeviceStream stream = driver.openStream(Priority.NORMAL);
    private final VirtualMemory memory = driver.virtualMemory();
    private final long page = memory.pageBytes();

    @AfterEach
    void close() {
        standIn.release();
        stream.close();
        driver.close();
        assertThat(standIn.left()).isEmpty();
        arena.close();
    }

    @Test
    void givenADeviceThatFails_whenASpanIsClosed_thenThePoolCanBeClosedAndTheRestGoesWithTheDriver() {
        assumeThat(standIn.canHold()).as("a driver that fails when told to").isTrue();
        Logger.getLogger("io.kvcache.gpu").setLevel(Level.OFF);
        GrowthPool pool = new GrowthPool(memory, 4 * page, 0);
        GrowingSpan span = pool.open(4 * page);
        assertThat(span.grow(2 * page)).isTrue();
        standIn.failTwice("cuStreamQuery", 46);
        assertThatExceptionOfType(DeviceException.class).isThrownBy(span::close);
        assertThatIllegalStateException().isThrownBy(span::close).withMessageContaining("closed");
        pool.close();
        assertThat(driver.resourceCounts().virtual())
                .as("a range and two pages, mapped")
                .isEqualTo(5);
        Logger.getLogger("io.kvcache.gpu").setLevel(null);
    }

    @Test
    void givenASecondDriverThatStillHasSomething_whenThePoolIsClosed_thenItsPagesAreGivenBackAllTheSame() {
        assumeThat(standIn.canHold()).as("a driver that counts what it has").isTrue();
        DeviceDriver beside = standIn.open();
        GrowthPool pool = new GrowthPool(memory, 4 * page, 4 * page, beside);
        beside.allocate(1);
        GrowingSpan span = pool.open(4 * page);
        assertThat(span.grow(2 * page)).isTrue();
        span.close();
        assertThat(pool.physicalBytes()).isPositive();
        assertThatIllegalStateException().isThrownBy(pool::close).withMessageContaining("before all was given back");
        assertThat(driver.resourceCounts().virtual()).isZero();
    }

    /// The pool's thread has bound the other driver last.
    @Test
    void givenADeviceThatLetsNobodyInOnce_whenAPoolIsClosed_thenAllItsPagesAreGivenBack() {
        assumeThat(standIn.canHold()).as("a driver that fails when told to").isTrue();
        GrowthPool pool = new GrowthPool(memory, 4 * page, 4 * page, standIn.open());
        GrowingSpan span = pool.open(4 * page);
        assertThat(span.grow(3 * page)).isTrue();
        span.close();
        assertThat(driver.resourceCounts().virtual()).isGreaterThanOrEqualTo(3);
        standIn.failCall("cuCtxSetCurrent", 2, 2); // the first is the other driver's
        pool.close();
        assertThat(standIn.injected()).isEqualTo(1);
        assertThat(driver.resourceCounts().virtual()).isZero();
    }

    /// A refusal to take something back says nothing of the copies that are on their way.
    @Test
    void givenADriverThatRefusedToTakeAnEventBack_whenAPageIsUnmapped_thenCopiesToItAreStillWaitedFor() {
        assumeThat(standIn.canHold()).as("a driver that is late when told to").isTrue();
        Logger.getLogger("io.kvcache.gpu").setLevel(Level.OFF);
        DeviceSpan range = memory.reserve(page);
        PhysicalPages pages = memory.create(page);
        memory.map(range.address(), pages);
        DeviceEvent other = driver.openEvent();
        standIn.failCall("cuEventDestroy_v2", 1, 1);
        other.close();
        assertThat(standIn.injected()).isEqualTo(1);
        standIn.delay(1_000_000);
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
        assumeThat(standIn.canHold()).as("a driver that counts what it has").isTrue();
        String before = standIn.left();
        DeviceDriver other = standIn.open();
        VirtualMemory left = other.virtualMemory();
        DeviceSpan range = left.reserve(2 * page);
        left.map(range.address(), left.create(page));
        assertThatIllegalStateException().isThrownBy(other::close).withMessageContaining("virtual=3");
        assertThat(standIn.left()).isEqualTo(before);
    }
}
