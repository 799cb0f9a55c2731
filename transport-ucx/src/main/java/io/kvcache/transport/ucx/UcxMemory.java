package io.kvcache.transport.ucx;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.kvcache.core.shm.SharedMemory;
import io.kvcache.transport.ucx.UcpLibrary.UcpFunction;
import io.kvcache.transport.wire.SharedMemoryCodec.FabricDescriptor;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.locks.LockSupport;

/// Exports a store's slots for one-sided reads.
///
/// ```java
/// try (var memory = UcxMemory.export(cache.sharedMemory(), "");
///         var endpoint = TcpEndpoint.open(cache, address, options.withFabric(memory.descriptor()))) {
///     // RemoteKvCache.connect("ucx:host:port") in other processes
/// }
/// ```
///
/// If a network device reads the memory, this process does nothing. Over TCP and shared memory one thread replies,
/// which sleeps between requests.
///
/// **Trust.** See the package: any process that reaches this one over the fabric can read and write all of it.
///
/// **Ownership.** The caller keeps the store, and closes the endpoint first, then this, then the store.
@SuppressWarnings("exports") // A descriptor goes into the options of an endpoint.
public final class UcxMemory implements AutoCloseable {

    private static final System.Logger LOG = System.getLogger(UcxMemory.class.getName());

    // ucp_mem_map_params_t: address, length and protection.
    private static final long MAP_BYTES = 128;
    private static final long MAP_ADDRESS_LENGTH_PROTECTION = 1 | 1 << 1 | 1 << 3;
    private static final long MAP_ADDRESS = 8;
    private static final long MAP_LENGTH = 16;
    private static final long MAP_PROTECTION = 28;

    /// Local reads and writes, and remote reads. Network devices enforce it.
    private static final int PROTECTION = 1 | 1 << 1 | 1 << 8;

    /// Polls before the thread sleeps, as a client that has read a block asks for the next one at once.
    private static final int POLLS_BEFORE_SLEEP = 200;

    /// Pause after a failed wait, so that the thread does not spin.
    private static final long PAUSE_NANOS = 1_000_000;

    private final UcpWorker worker;
    private final MemorySegment mapped;
    private final FabricDescriptor descriptor;
    private final Thread thread;
    private volatile boolean closed;

    private UcxMemory(UcpWorker worker, MemorySegment slots) throws IOException {
        this.worker = worker;
        mapped = map(slots);
        boolean good = false;
        try {
            descriptor = new FabricDescriptor(slots.address(), slots.byteSize(), worker.address(), key());
            good = true;
        } finally {
            if (!good) {
                worker.ucpLibrary().status(UcpFunction.MEM_UNMAP, worker.context(), mapped);
            }
        }
        thread = Thread.ofPlatform().daemon().name("kvcache-ucx").start(this::serve);
    }

    /// Returns whether UCX is installed here.
    public static boolean possible() {
        try {
            UcpLibrary.load();
            return true;
        } catch (IOException missing) {
            return false;
        }
    }

    /// Offers the slots of a store, over all networks.
    ///
    /// @param transports as UCX names them, such as `tcp`, `shm` or `rc,tcp`; empty for all that there are
    /// @throws IOException when UCX is missing, or cannot use these transports or this memory
    public static UcxMemory export(SharedMemory memory, String transports) throws IOException {
        return export(memory, transports, "");
    }

    /// Offers the slots of a store.
    ///
    /// @param transports as above
    /// @param devices of networks, as UCX names them, such as `lo` for this machine; empty for all
    /// @throws IOException when UCX is missing, or cannot use these or this memory
    public static UcxMemory export(SharedMemory memory, String transports, String devices) throws IOException {
        UcpWorker worker = UcpWorker.open(transports, devices);
        boolean good = false;
        try {
            UcxMemory offered = new UcxMemory(worker, memory.slots());
            good = true;
            return offered;
        } finally {
            if (!good) {
                worker.close();
            }
        }
    }

    private MemorySegment map(MemorySegment slots) throws IOException {
        MemorySegment params = worker.arena().allocate(MAP_BYTES, Long.BYTES);
        params.set(JAVA_LONG, 0, MAP_ADDRESS_LENGTH_PROTECTION);
        params.set(ADDRESS, MAP_ADDRESS, slots);
        params.set(JAVA_LONG, MAP_LENGTH, slots.byteSize());
        params.set(JAVA_INT, MAP_PROTECTION, PROTECTION);
        MemorySegment out = worker.arena().allocate(ADDRESS);
        worker.ucpLibrary().require(UcpFunction.MEM_MAP, worker.context(), params, out);
        return UcpLibrary.pointer(out);
    }

    private byte[] key() throws IOException {
        MemorySegment out = worker.arena().allocate(ADDRESS);
        MemorySegment length = worker.arena().allocate(JAVA_LONG);
        worker.ucpLibrary().require(UcpFunction.RKEY_PACK, worker.context(), mapped, out, length);
        MemorySegment packed = UcpLibrary.pointer(out);
        try {
            return UcpWorker.bytes(packed, length);
        } finally {
            worker.ucpLibrary().call(UcpFunction.RKEY_BUFFER_RELEASE, packed);
        }
    }

    /// Returns the descriptor that authorized clients receive.
    public FabricDescriptor descriptor() {
        return descriptor;
    }

    private void serve() {
        int idle = 0;
        while (!closed) {
            if (worker.progress()) {
                idle = 0;
            } else if (idle < POLLS_BEFORE_SLEEP) {
                idle++;
                Thread.onSpinWait();
            } else if (!worker.await()) {
                LockSupport.parkNanos(PAUSE_NANOS);
            } else {
                idle = 0;
            }
        }
    }

    /// Ends all remote access.
    @Override
    public void close() {
        if (closed) {
            return;
        }
        closed = true;
        worker.signal();
        boolean interrupted = false;
        while (thread.isAlive()) {
            try {
                thread.join();
            } catch (InterruptedException stopped) {
                interrupted = true;
            }
        }
        if (worker.ucpLibrary().status(UcpFunction.MEM_UNMAP, worker.context(), mapped) != UcpLibrary.OK) {
            LOG.log(System.Logger.Level.WARNING, "UCX cannot unmap a store's slots");
        }
        worker.close();
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
