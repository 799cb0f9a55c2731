package io.kvcache.gpu.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.check.BlockContent;
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
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
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
    private final Overseen drivers = new Overseen(standIn);
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
            FaultsInTurn.injectWithin(standIn, "sharing by tokens", code, FEWEST, (driver, turn) -> {
                turn.begin();
                try (Taken taken = new Taken(turn)) {
                    byTokens(driver, peer, content(turn.nth(), BYTES), back, taken);
                    new BlockContent(turn.nth()).requireEqual(back);
                    return true;
                } catch (DeviceException refused) {
                    turn.endsWith(refused);
                    return false;
                }
            });
        }
    }

    private static void byTokens(
            DeviceDriver driver, TokenPeer peer, MemorySegment content, MemorySegment back, Taken taken) {
        DeviceSharing sharing = driver.sharing();
        DeviceStream stream = taken.as(driver.openStream(Priority.NORMAL), DeviceStream::close);
        DeviceSpan theirs = taken.as(sharing.open(peer.memory()), sharing::close);
        assertThat(theirs.bytes()).isGreaterThanOrEqualTo(BYTES);
        DeviceEvent filled = taken.as(sharing.openEvent(peer.event()), DeviceEvent::close);
        DeviceEvent mine = taken.as(sharing.sharedEvent(), DeviceEvent::close);
        DeviceSpan slab = taken.as(driver.allocate(BYTES), driver::free);
        assertThat(sharing.export(slab)).hasSize(DeviceSharing.TOKEN_BYTES);
        assertThat(sharing.export(mine)).hasSize(DeviceSharing.TOKEN_BYTES);
        stream.waitFor(filled);
        stream.toDevice(content, theirs.address());
        stream.within(theirs.address(), slab.address(), BYTES);
        stream.toHost(slab.address(), back);
        stream.record(mine);
        await(mine);
    }

    @ParameterizedTest
    @ValueSource(ints = {2, 46, 999})
    void givenAFaultAtEachCallInTurn_whenSharingByDescriptors_thenNeverAWrongByteNorALeak(int code) throws Exception {
        MemorySegment back = arena.allocate(BYTES, 4096);
        long before = Descriptors.open();
        FaultsInTurn.injectWithin(standIn, "sharing by descriptors", code, FEWEST, (driver, turn) -> {
            turn.begin();
            try (Taken taken = new Taken(turn)) {
                byDescriptor(driver, content(turn.nth(), BYTES), back, taken);
                new BlockContent(turn.nth()).requireEqual(back);
                return true;
            } catch (DeviceException refused) {
                turn.endsWith(refused);
                return false;
            }
        });
        StandIn.fresh();
        assertThat(Descriptors.open()).isLessThan(before + FEWEST);
    }

    /// The same memory, mapped where it was created and where its descriptor came to.
    private static void byDescriptor(DeviceDriver driver, MemorySegment content, MemorySegment back, Taken taken) {
        VirtualMemory virtual = driver.virtualMemory();
        long page = virtual.pageBytes();
        DeviceStream stream = taken.as(driver.openStream(Priority.NORMAL), DeviceStream::close);
        DeviceEvent event = taken.as(driver.openEvent(), DeviceEvent::close);
        DevicePages pages = taken.as(virtual.createShared(page), virtual::release);
        DevicePages again;
        int descriptor = virtual.export(pages);
        try {
            again = taken.as(virtual.open(descriptor, page), virtual::release);
        } finally {
            Descriptors.close(descriptor);
        }
        DeviceSpan here = taken.as(virtual.reserve(page), virtual::unreserve);
        DeviceSpan there = taken.as(virtual.reserve(page), virtual::unreserve);
        virtual.map(here.address(), pages);
        taken.as(pages, mapped -> virtual.unmap(here.address(), mapped));
        virtual.map(there.address(), again);
        taken.as(again, mapped -> virtual.unmap(there.address(), mapped));
        stream.toDevice(content, here.address());
        stream.toHost(there.address(), back);
        stream.record(event);
        await(event);
    }

    @ParameterizedTest
    @ValueSource(ints = {2, 46, 304, 712, 999})
    void givenAFaultAtEachCallInTurn_whenTwoDriversRegister_thenNeverAWrongByteNorALeak(int code) throws Exception {
        MemorySegment back = arena.allocate(BYTES, 4096);
        FaultsInTurn.inject(standIn, "registration", code, FEWEST, (nth, begin) -> {
            begin.run();
            MemorySegment content = content(nth, BYTES);
            try (Opened one = new Opened(drivers.open());
                    Opened two = new Opened(drivers.open())) {
                return registered(one.driver, two.driver, content, back, nth);
            } catch (DeviceException refused) {
                return false;
            } finally {
                drivers.requireNothingLeft();
            }
        });
    }

    /// The first lets go of the memory while the second goes on with it. Answers whether both had
    /// it.
    private static boolean registered(
            DeviceDriver one, DeviceDriver two, MemorySegment content, MemorySegment back, int nth) {
        try (Registered second = new Registered(two, content)) {
            boolean both;
            try (Registered first = new Registered(one, content)) {
                both = first.holds && second.holds;
                there(one, content, back);
                new BlockContent(nth).requireEqual(back);
            }
            back.fill((byte) 0);
            there(two, content, back);
            new BlockContent(nth).requireEqual(back);
            return both;
        }
    }

    /// Host memory as a driver has it registered, or did not want it.
    private static final class Registered implements AutoCloseable {

        private final DeviceDriver driver;
        private final MemorySegment host;
        private final boolean holds;

        Registered(DeviceDriver driver, MemorySegment host) {
            this.driver = driver;
            this.host = host;
            holds = registered();
        }

        private boolean registered() {
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

        @Override
        public void close() {
            if (holds) {
                driver.unregister(host);
            }
        }
    }

    private static void there(DeviceDriver driver, MemorySegment content, MemorySegment back) {
        DeviceSpan slab = driver.allocate(BYTES);
        try (DeviceStream stream = driver.openStream(Priority.HIGH);
                DeviceEvent event = driver.openEvent()) {
            stream.toDevice(content, slab.address());
            stream.toHost(slab.address(), back);
            stream.record(event);
            await(event);
        } finally {
            driver.free(slab);
        }
    }

    /// What was taken of a driver, given back last first, whatever the driver has against it.
    private static final class Taken implements AutoCloseable {

        private final Deque<Runnable> giveBack = new ArrayDeque<>();
        private final FaultsInTurn.Turn turn;

        Taken(FaultsInTurn.Turn turn) {
            this.turn = turn;
        }

        <T> T as(T thing, Consumer<T> back) {
            giveBack.push(() -> back.accept(thing));
            return thing;
        }

        @Override
        public void close() {
            for (Runnable each : giveBack) {
                try {
                    each.run();
                } catch (DeviceException refused) {
                    turn.endsWith(refused);
                }
            }
        }
    }

    /// A driver, closed with whatever it still has.
    private record Opened(DeviceDriver driver) implements AutoCloseable {

        @Override
        public void close() {
            FaultsInTurn.close(driver);
        }
    }
}
