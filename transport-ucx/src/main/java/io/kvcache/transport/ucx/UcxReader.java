package io.kvcache.transport.ucx;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.kvcache.transport.net.FabricReader;
import io.kvcache.transport.ucx.UcpLibrary.UcpFunction;
import io.kvcache.transport.wire.SharedMemoryCodec.FabricDescriptor;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.util.ArrayDeque;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

/// Reads another process's slots one-sided, over UCX.
@SuppressWarnings({"exports", "missing-explicit-ctor"}) // For the client alone.
public final class UcxReader implements FabricReader {

    private static final System.Logger LOG = System.getLogger(UcxReader.class.getName());

    // ucp_ep_params_t: the peer's address, and detection of its failure.
    private static final long EP_BYTES = 128;
    private static final long EP_ADDRESS_AND_ERRORS = 1 | 1 << 1;
    private static final long EP_ADDRESS = 8;
    private static final long EP_ERRORS = 16;
    private static final int PEER_FAILURE_DETECTION = 1;

    // ucp_request_param_t: flags, used for closing.
    private static final long REQUEST_BYTES = 128;
    private static final int REQUEST_FLAGS = 1 << 4;
    private static final int CLOSE_BY_FORCE = 1;

    /// Most reads in flight, so that the last ones of many do not wait for all.
    private static final int MAX_PENDING = 16;

    /// Polls before the thread sleeps.
    private static final int POLLS_BEFORE_SLEEP = 2000;

    private static final long SLEEP_NANOS = TimeUnit.MICROSECONDS.toNanos(20);

    /// Time limit for cancelled reads to end.
    private static final long CANCEL_TIMEOUT_NANOS = TimeUnit.SECONDS.toNanos(2);

    private final UcpWorker worker;
    private final FabricDescriptor descriptor;
    private final MethodHandle get;
    private final MethodHandle check;
    private final MemorySegment none;
    private final MemorySegment endpoint;
    private final MemorySegment key;
    private final ReentrantLock lock = new ReentrantLock();
    private final Queue<Long> pending = new ArrayDeque<>();
    private volatile boolean usable = true;
    private boolean detectsPeerFailure;
    private boolean interrupted;
    private boolean closed;

    private UcxReader(UcpWorker worker, FabricDescriptor place) throws IOException {
        this.worker = worker;
        this.descriptor = place;
        get = worker.ucpLibrary().handle(UcpFunction.GET_NBX);
        check = worker.ucpLibrary().handle(UcpFunction.REQUEST_CHECK_STATUS);
        none = worker.arena().allocate(REQUEST_BYTES, Long.BYTES);
        endpoint = endpoint();
        boolean good = false;
        try {
            key = key();
            good = true;
        } finally {
            if (!good) {
                disconnect();
            }
        }
    }

    /// Found by `ServiceLoader`. Loads UCX at the first connection.
    public static final class Provider implements FabricReader.Provider {

        @Override
        public FabricReader connect(FabricDescriptor place, String transports) throws IOException {
            UcpWorker worker = UcpWorker.open(transports, "");
            boolean good = false;
            try {
                UcxReader reader = new UcxReader(worker, place);
                good = true;
                return reader;
            } finally {
                if (!good) {
                    worker.close();
                }
            }
        }
    }

    /// Opens the endpoint. It detects a failure of the peer if the transports can.
    private MemorySegment endpoint() throws IOException {
        MemorySegment params = worker.arena().allocate(EP_BYTES, Long.BYTES);
        params.set(JAVA_LONG, 0, EP_ADDRESS_AND_ERRORS);
        params.set(ADDRESS, EP_ADDRESS, copied(descriptor.address()));
        params.set(JAVA_INT, EP_ERRORS, PEER_FAILURE_DETECTION);
        MemorySegment out = worker.arena().allocate(ADDRESS);
        detectsPeerFailure =
                worker.ucpLibrary().status(UcpFunction.EP_CREATE, worker.handle(), params, out) == UcpLibrary.OK;
        if (!detectsPeerFailure) {
            params.set(JAVA_INT, EP_ERRORS, 0);
            worker.ucpLibrary().require(UcpFunction.EP_CREATE, worker.handle(), params, out);
        }
        return UcpLibrary.pointer(out);
    }

    private MemorySegment key() throws IOException {
        MemorySegment out = worker.arena().allocate(ADDRESS);
        worker.ucpLibrary().require(UcpFunction.EP_RKEY_UNPACK, endpoint, copied(descriptor.key()), out);
        return UcpLibrary.pointer(out);
    }

    private MemorySegment copied(byte[] bytes) {
        MemorySegment copy = worker.arena().allocate(bytes.length, Long.BYTES);
        return copy.copyFrom(MemorySegment.ofArray(bytes));
    }

    @Override
    public boolean isUsable() {
        return usable;
    }

    @Override
    public boolean contains(long offset, long bytes) {
        return offset >= 0 && bytes >= 0 && offset <= descriptor.bytes() - bytes;
    }

    @Override
    public Outcome read(List<RemoteRead> pieces, long timeoutNanos) {
        long end = System.nanoTime() + timeoutNanos;
        lock.lock();
        try {
            if (!usable) {
                return Outcome.FAILED;
            }
            boolean good = true;
            for (int next = 0; good && next < pieces.size(); next++) {
                good = begin(pieces.get(next)) && awaitPending(MAX_PENDING, end);
            }
            return good && awaitPending(0, end) ? Outcome.DONE : cancelPending();
        } finally {
            if (interrupted) {
                interrupted = false;
                Thread.currentThread().interrupt();
            }
            lock.unlock();
        }
    }

    private boolean begin(RemoteRead remoteRead) {
        assert contains(remoteRead.offset(), remoteRead.into().byteSize()) : remoteRead + " is not in the slots";
        long request;
        try {
            request = (long) get.invokeExact(
                    endpoint,
                    remoteRead.into(),
                    remoteRead.into().byteSize(),
                    descriptor.base() + remoteRead.offset(),
                    key,
                    none);
        } catch (Throwable bug) {
            throw UcpLibrary.unexpected(bug);
        }
        if (UcpLibrary.isPending(request)) {
            pending.add(request);
            return true;
        }
        return request == UcpLibrary.OK;
    }

    /// Waits until at most this many reads are in flight. Returns whether those that ended succeeded, in time.
    private boolean awaitPending(int most, long end) {
        int idle = 0;
        while (pending.size() > most) {
            int status = status(pending.element());
            if (status != UcpLibrary.IN_PROGRESS) {
                worker.ucpLibrary().call(UcpFunction.REQUEST_FREE, pending.remove());
                if (status != UcpLibrary.OK) {
                    return false;
                }
            } else if (worker.progress()) {
                idle = 0;
            } else if (System.nanoTime() - end > 0) {
                return false;
            } else {
                backOff(idle++);
            }
        }
        return true;
    }

    /// An interrupt, with which no thread sleeps, is put aside: the read that it would end is of all callers.
    private void backOff(int idle) {
        if (idle < POLLS_BEFORE_SLEEP) {
            Thread.onSpinWait();
        } else {
            LockSupport.parkNanos(SLEEP_NANOS);
            interrupted |= Thread.interrupted();
        }
    }

    private int status(long request) {
        try {
            return UcpLibrary.status((int) check.invokeExact(request));
        } catch (Throwable bug) {
            throw UcpLibrary.unexpected(bug);
        }
    }

    /// Cancels the reads in flight.
    private Outcome cancelPending() {
        usable = false;
        disconnect();
        long end = System.nanoTime() + CANCEL_TIMEOUT_NANOS;
        while (!pending.isEmpty() && System.nanoTime() - end < 0) {
            awaitPending(pending.size() - 1, end);
        }
        if (!pending.isEmpty()) {
            LOG.log(System.Logger.Level.WARNING, pending.size() + " reads over UCX do not end; their memory is lost");
        }
        return pending.isEmpty() ? Outcome.FAILED : Outcome.BUFFERS_UNSAFE;
    }

    private void disconnect() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment params = arena.allocate(REQUEST_BYTES, Long.BYTES);
            params.set(JAVA_INT, 0, REQUEST_FLAGS);
            params.set(JAVA_INT, Integer.BYTES, detectsPeerFailure ? CLOSE_BY_FORCE : 0);
            long request = worker.ucpLibrary().request(UcpFunction.EP_CLOSE_NBX, endpoint, params);
            if (UcpLibrary.isPending(request)) {
                long end = System.nanoTime() + CANCEL_TIMEOUT_NANOS;
                while (status(request) == UcpLibrary.IN_PROGRESS && System.nanoTime() - end < 0) {
                    worker.progress();
                }
                worker.ucpLibrary().call(UcpFunction.REQUEST_FREE, request);
            }
        }
    }

    @Override
    public void close() {
        lock.lock();
        try {
            if (closed) {
                return;
            }
            closed = true;
            worker.ucpLibrary().call(UcpFunction.RKEY_DESTROY, key);
            if (usable) {
                usable = false;
                disconnect();
            }
            // UCX may still write to this memory, so it is leaked rather than freed.
            if (pending.isEmpty()) {
                worker.close();
            }
        } finally {
            lock.unlock();
        }
    }
}
