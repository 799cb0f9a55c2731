package io.kvcache.transport.ucx;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;

/// A context of UCX with one worker: what moves bytes, as long as somebody has it make progress.
///
/// **Threads.** One at a time, but [#signal], which any may call.
final class UcpWorker implements AutoCloseable {

    /// The interface that the layouts below are of.
    private static final int API_MAJOR = 1;

    private static final int API_MINOR = 13;

    // Of ucp_params_t: which fields, and features. Reads, waiting, and messages, by which reads are emulated.
    private static final long PARAMS_BYTES = 80;
    private static final long PARAMS_FEATURES = 1;
    private static final long FEATURES = 1 << 1 | 1 << 4 | 1 << 6;

    /// Of ucp_worker_params_t, all of it zero: a single thread.
    private static final long WORKER_PARAMS_BYTES = 256;

    private final Ucp ucp;
    private final Arena arena = Arena.ofShared();
    private final MethodHandle progress;
    private final MemorySegment context;
    private final MemorySegment worker;

    private UcpWorker(Ucp ucp, String transports, String devices) throws IOException {
        this.ucp = ucp;
        boolean good = false;
        try {
            progress = ucp.handle(UcpCall.WORKER_PROGRESS);
            MemorySegment out = arena.allocate(ValueLayout.ADDRESS);
            context = context(config(transports, devices, out), out);
            worker = worker(out);
            good = true;
        } finally {
            if (!good) {
                arena.close();
            }
        }
    }

    private MemorySegment context(MemorySegment config, MemorySegment out) throws IOException {
        try {
            MemorySegment params = arena.allocate(PARAMS_BYTES, Long.BYTES);
            params.set(JAVA_LONG, 0, PARAMS_FEATURES);
            params.set(JAVA_LONG, Long.BYTES, FEATURES);
            ucp.require(UcpCall.INIT_VERSION, API_MAJOR, API_MINOR, params, config, out);
            return Ucp.pointer(out);
        } finally {
            ucp.call(UcpCall.CONFIG_RELEASE, config);
        }
    }

    private MemorySegment config(String transports, String devices, MemorySegment out) throws IOException {
        ucp.require(UcpCall.CONFIG_READ, MemorySegment.NULL, MemorySegment.NULL, out);
        MemorySegment config = Ucp.pointer(out);
        boolean good = false;
        try {
            modify(config, "TLS", transports, "transports");
            modify(config, "NET_DEVICES", devices, "devices");
            good = true;
        } finally {
            if (!good) {
                ucp.call(UcpCall.CONFIG_RELEASE, config);
            }
        }
        return config;
    }

    private void modify(MemorySegment config, String name, String value, String what) throws IOException {
        if (!value.isEmpty()
                && ucp.status(UcpCall.CONFIG_MODIFY, config, arena.allocateFrom(name), arena.allocateFrom(value))
                        != Ucp.OK) {
            throw new IOException("UCX does not take the " + what + " \"" + value + "\"");
        }
    }

    private MemorySegment worker(MemorySegment out) throws IOException {
        MemorySegment params = arena.allocate(WORKER_PARAMS_BYTES, Long.BYTES);
        params.set(JAVA_INT, 0, 0);
        int status = ucp.status(UcpCall.WORKER_CREATE, context, params, out);
        if (status != Ucp.OK) {
            ucp.call(UcpCall.CLEANUP, context);
            throw new IOException("UCX has no worker over these transports: its status is " + status);
        }
        return Ucp.pointer(out);
    }

    /// @param transports as UCX names them, such as `tcp`, `shm` or `rc,tcp`; empty for all that there are
    /// @param devices of networks, as UCX names them, such as `lo` for this machine; empty for all
    /// @throws IOException when UCX is missing, or has none of these
    static UcpWorker open(String transports, String devices) throws IOException {
        return new UcpWorker(Ucp.load(), transports, devices);
    }

    Ucp ucp() {
        return ucp;
    }

    MemorySegment context() {
        return context;
    }

    MemorySegment handle() {
        return worker;
    }

    /// Memory that is freed with the worker.
    Arena arena() {
        return arena;
    }

    /// How others reach it.
    byte[] address() throws IOException {
        MemorySegment out = arena.allocate(ValueLayout.ADDRESS);
        MemorySegment length = arena.allocate(JAVA_LONG);
        ucp.require(UcpCall.WORKER_GET_ADDRESS, worker, out, length);
        MemorySegment packed = Ucp.pointer(out);
        try {
            return bytes(packed, length);
        } finally {
            ucp.call(UcpCall.WORKER_RELEASE_ADDRESS, worker, packed);
        }
    }

    /// What UCX has packed, and said the length of.
    @SuppressWarnings("restricted") // As long as it says.
    static byte[] bytes(MemorySegment packed, MemorySegment length) {
        return packed.reinterpret(length.get(JAVA_LONG, 0)).toArray(ValueLayout.JAVA_BYTE);
    }

    /// Moves what can be moved; answers whether anything was.
    boolean progress() {
        try {
            return (int) progress.invokeExact(worker) != 0;
        } catch (Throwable bug) {
            throw Ucp.bug(bug);
        }
    }

    /// Sleeps until there may be something to move, or [#signal].
    ///
    /// @return false when it did not sleep
    boolean await() {
        return ucp.status(UcpCall.WORKER_WAIT, worker) == Ucp.OK;
    }

    void signal() {
        ucp.status(UcpCall.WORKER_SIGNAL, worker);
    }

    @Override
    public void close() {
        ucp.call(UcpCall.WORKER_DESTROY, worker);
        ucp.call(UcpCall.CLEANUP, context);
        arena.close();
    }
}
