package io.kvcache.gpu.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.contract.BlockContent;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceDriver.Priority;
import io.kvcache.gpu.driver.DeviceEvent;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.driver.DevicePages;
import io.kvcache.gpu.driver.DeviceSharing;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.DeviceStream;
import io.kvcache.gpu.driver.VirtualMemory;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Every call of the driver fails once, each in turn, while memory is shared with another process,
/// by tokens and by descriptors, and while two drivers have the same host memory registered.
final class SharingFaultsTest {

    private static final int BYTES = 300_000;
    private static final int FEWEST = 20;
    private static final long LONG_NANOS = TimeUnit.SECONDS.toNanos(60);

    private final StandIn standIn = StandIn.fresh();
    private final Arena arena = Arena.ofShared();

    @AfterEach
    void close() {
        StandIn.fresh();
        assertThat(standIn.left()).isEmpty();
        arena.close();
    }

    private MemorySegment content(int seed, long bytes) {
        MemorySegment content = arena.allocate(bytes, 4096);
        new BlockContent(seed).fill(content);
        return content;
    }

    private static void await(DeviceEvent event) {
        assertThat(event.await(LONG_NANOS)).isTrue();
    }

    @ParameterizedTest
    @ValueSource(ints = {2, 46, 205, 999})
    void givenAFaultAtEachCallInTurn_whenSharingByTokens_thenNeverAWrongByteNorALeak(int code) throws Exception {
        FaultsInTurn.assumePossible(standIn);
        try (TokenPeer peer = new TokenPeer(BYTES)) {
            MemorySegment back = arena.allocate(BYTES, 4096);
            FaultsInTurn.inject(standIn, "sharing by tokens", code, FEWEST, (nth, begin) -> {
                begin.run();
                try (Opened opened = new Opened(standIn.open())) {
                    byTokens(opened.driver, peer, content(nth, BYTES), back);
                    new BlockContent(nth).require(back);
                    return true;
                } catch (DeviceException refused) {
                    return false;
                }
            });
        }
    }

    private static void byTokens(DeviceDriver driver, TokenPeer peer, MemorySegment content, MemorySegment back) {
        DeviceSharing sharing = driver.sharing();
        DeviceStream stream = driver.openStream(Priority.NORMAL);
        DeviceSpan theirs = sharing.open(peer.memory());
        assertThat(theirs.bytes()).isEqualTo(BYTES);
        DeviceEvent filled = sharing.openEvent(peer.event());
        DeviceEvent mine = sharing.sharedEvent();
        DeviceSpan slab = driver.allocate(BYTES);
        assertThat(sharing.export(slab)).hasSize(DeviceSharing.TOKEN_BYTES);
        assertThat(sharing.export(mine)).hasSize(DeviceSharing.TOKEN_BYTES);
        stream.waitFor(filled);
        stream.toDevice(content, theirs.address());
        stream.within(theirs.address(), slab.address(), BYTES);
        stream.toHost(slab.address(), back);
        stream.record(mine);
        await(mine);
        mine.close();
        filled.close();
        driver.free(slab);
        sharing.close(theirs);
        stream.close();
    }

    @ParameterizedTest
    @ValueSource(ints = {2, 46, 999})
    void givenAFaultAtEachCallInTurn_whenSharingByDescriptors_thenNeverAWrongByteNorALeak(int code) throws Exception {
        MemorySegment back = arena.allocate(BYTES, 4096);
        long before = Descriptors.open();
        FaultsInTurn.inject(standIn, "sharing by descriptors", code, FEWEST, (nth, begin) -> {
            begin.run();
            try (Opened opened = new Opened(standIn.open())) {
                byDescriptor(opened.driver, content(nth, BYTES), back);
                new BlockContent(nth).require(back);
                return true;
            } catch (DeviceException refused) {
                return false;
            }
        });
        StandIn.fresh();
        assertThat(Descriptors.open()).isLessThan(before + FEWEST);
    }

    /// The same memory, mapped where it was created and where its descriptor came to.
    private static void byDescriptor(DeviceDriver driver, MemorySegment content, MemorySegment back) {
        VirtualMemory virtual = driver.virtualMemory();
        long page = virtual.pageBytes();
        DeviceStream stream = driver.openStream(Priority.NORMAL);
        DeviceEvent event = driver.openEvent();
        DevicePages pages = virtual.createShared(page);
        DevicePages again;
        int descriptor = virtual.export(pages);
        try {
            again = virtual.open(descriptor, page);
        } finally {
            Descriptors.close(descriptor);
        }
        DeviceSpan here = virtual.reserve(page);
        DeviceSpan there = virtual.reserve(page);
        virtual.map(here.address(), pages);
        virtual.map(there.address(), again);
        stream.toDevice(content, here.address());
        stream.toHost(there.address(), back);
        stream.record(event);
        await(event);
        virtual.unmap(there.address(), again);
        virtual.unmap(here.address(), pages);
        virtual.release(again);
        virtual.release(pages);
        virtual.unreserve(there);
        virtual.unreserve(here);
        event.close();
        stream.close();
    }

    @ParameterizedTest
    @ValueSource(ints = {2, 46, 304, 712, 999})
    void givenAFaultAtEachCallInTurn_whenTwoDriversRegister_thenNeverAWrongByteNorALeak(int code) throws Exception {
        MemorySegment back = arena.allocate(BYTES, 4096);
        FaultsInTurn.inject(standIn, "registration", code, FEWEST, (nth, begin) -> {
            begin.run();
            MemorySegment content = content(nth, BYTES);
            try (Opened one = new Opened(standIn.open());
                    Opened two = new Opened(standIn.open())) {
                boolean first = registered(one.driver, content);
                boolean second = registered(two.driver, content);
                there(one.driver, content, back);
                new BlockContent(nth).require(back);
                if (first) {
                    one.driver.unregister(content);
                }
                back.fill((byte) 0);
                there(two.driver, content, back);
                new BlockContent(nth).require(back);
                if (second) {
                    two.driver.unregister(content);
                }
                return first && second;
            } catch (DeviceException refused) {
                return false;
            }
        });
    }

    private static boolean registered(DeviceDriver driver, MemorySegment host) {
        try {
            driver.register(host);
            return true;
        } catch (DeviceException refused) {
            if (refused.error().ends()) {
                throw refused;
            }
            return false;
        }
    }

    private static void there(DeviceDriver driver, MemorySegment content, MemorySegment back) {
        DeviceSpan slab = driver.allocate(BYTES);
        DeviceStream stream = driver.openStream(Priority.HIGH);
        DeviceEvent event = driver.openEvent();
        stream.toDevice(content, slab.address());
        stream.toHost(slab.address(), back);
        stream.record(event);
        await(event);
        event.close();
        stream.close();
        driver.free(slab);
    }

    /// A driver, closed with whatever it still has.
    private record Opened(DeviceDriver driver) implements AutoCloseable {

        @Override
        public void close() {
            FaultsInTurn.close(driver);
        }
    }
}
