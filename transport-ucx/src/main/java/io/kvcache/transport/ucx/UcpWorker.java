package io.kvcache.transport.ucx;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.kvcache.transport.ucx.UcpLibrary.UcpFunction;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;

/// A context of UCX with one worker, which moves bytes only inside calls of [#progress].
///
/// **Threads.** One at a time, but [#signal], which any may call.
final class UcpWorker implements AutoCloseable {

    /// Version of UCX's interface that has the layouts below.
    private static final int API_MAJOR = 1;

    private static final int API_MINOR = 13;

    // ucp_params_t: field mask and features. The features are reads, waiting, and messages, which emulate reads.
    private static final long PARAMS_BYTES = 80;
    private static final long PARAMS_FEATURES = 1;
    private static final long FEATURES = 1 << 1 | 1 << 4 | 1 << 6;

    /// ucp_worker_params_t, all zero: a single thread.
    private static final long WORKER_PARAMS_BYTES = 256;

    private final UcpLibrary ucpLibrary;
    private final Arena arena = Arena.ofShared();
    private final MethodHandle progress;
    private final MemorySegment context;
    private final MemorySegment worker;

    private UcpWorker(UcpLibrary ucpLibrary, String transports, String devices) throws IOException {
        this.ucpLibrary = ucpLibrary;
        boolean good = false;
        try {
            progress = ucpLibrary.handle(UcpFunction.WORKER_PROGRESS);
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
            ucpLibrary.require(UcpFunction.INIT_VERSION, API_MAJOR, API_MINOR, params, config, out);
            return UcpLibrary.pointer(out);
        } finally {
            ucpLibrary.call(UcpFunction.CONFIG_RELEASE, config);
        }
    }

    private MemorySegment config(String transports, String devices, MemorySegment out) throws IOException {
        ucpLibrary.require(UcpFunction.CONFIG_READ, MemorySegment.NULL, MemorySegment.NULL, out);
        MemorySegment config = UcpLibrary.pointer(out);
        boolean good = false;
        try {
            modify(config, "TLS", transports, "transports");
            modify(config, "NET_DEVICES", devices, "devices");
            good = true;
        } finally {
            if (!good) {
                ucpLibrary.call(UcpFunction.CONFIG_RELEASE, config);
            }
        }
        return config;
    }

    private void modify(MemorySegment config, String name, String value, String what) throws IOException {
        if (!value.isEmpty()
                && ucpLibrary.status(
                                UcpFunction.CONFIG_MODIFY, config, arena.allocateFrom(name), arena.allocateFrom(value))
                        != UcpLibrary.OK) {
            throw new IOException("UCX rejects the " + what + " \"" + value + "\"");
        }
    }

    private MemorySegment worker(MemorySegment out) throws IOException {
        MemorySegment params = arena.allocate(WORKER_PARAMS_BYTES, Long.BYTES);
        params.set(JAVA_INT, 0, 0);
        int status = ucpLibrary.status(UcpFunction.WORKER_CREATE, context, params, out);
        if (status != UcpLibrary.OK) {
            ucpLibrary.call(UcpFunction.CLEANUP, context);
            throw new IOException("UCX cannot open a worker over these transports: status " + status);
        }
        return UcpLibrary.pointer(out);
    }

    /// @param transports as UCX names them, such as `tcp`, `shm` or `rc,tcp`; empty for all that there are
    /// @param devices of networks, as UCX names them, such as `lo` for this machine; empty for all
    /// @throws IOException when UCX is missing, or has none of these
    static UcpWorker open(String transports, String devices) throws IOException {
        return new UcpWorker(UcpLibrary.load(), transports, devices);
    }

    UcpLibrary ucpLibrary() {
        return ucpLibrary;
    }

    MemorySegment context() {
        return context;
    }

    MemorySegment handle() {
        return worker;
    }

    /// Returns the arena that is closed with the worker.
    Arena arena() {
        return arena;
    }

    /// Returns the address by which other processes reach it.
    byte[] address() throws IOException {
        MemorySegment out = arena.allocate(ValueLayout.ADDRESS);
        MemorySegment length = arena.allocate(JAVA_LONG);
        ucpLibrary.require(UcpFunction.WORKER_GET_ADDRESS, worker, out, length);
        MemorySegment packed = UcpLibrary.pointer(out);
        try {
            return bytes(packed, length);
        } finally {
            ucpLibrary.call(UcpFunction.WORKER_RELEASE_ADDRESS, worker, packed);
        }
    }

    /// Copies bytes that UCX has packed, by the length that it reported.
    @SuppressWarnings("restricted") // As long as it says.
    static byte[] bytes(MemorySegment packed, MemorySegment length) {
        return packed.reinterpret(length.get(JAVA_LONG, 0)).toArray(ValueLayout.JAVA_BYTE);
    }

    /// Moves bytes where possible; returns whether it moved any.
    boolean progress() {
        try {
            return (int) progress.invokeExact(worker) != 0;
        } catch (Throwable bug) {
            throw UcpLibrary.unexpected(bug);
        }
    }

    /// Sleeps until there may be bytes to move, or until [#signal].
    ///
    /// @return false when it did not sleep
    boolean await() {
        return ucpLibrary.status(UcpFunction.WORKER_WAIT, worker) == UcpLibrary.OK;
    }

    void signal() {
        ucpLibrary.status(UcpFunction.WORKER_SIGNAL, worker);
    }

    @Override
    public void close() {
        ucpLibrary.call(UcpFunction.WORKER_DESTROY, worker);
        ucpLibrary.call(UcpFunction.CLEANUP, context);
        arena.close();
    }
}
