package io.kvcache.transport.client;

import io.kvcache.core.shm.SharedMemory.SharedMemoryFiles;
import io.kvcache.transport.client.RemoteContext.RpcException;
import io.kvcache.transport.shm.SharedStore;
import io.kvcache.transport.shm.StagingMemory;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.SharedMemoryCodec.StagingDescriptor;
import java.io.IOException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/// The staging memory of one session. The first put requests it, once; the next one too, if the thread of the
/// first was interrupted. A put sends its bytes while that request runs, if the server rejected it, or if the
/// memory is full.
///
/// **Threads.** Any.
final class StagingClient {

    private static final System.Logger LOG = System.getLogger(StagingClient.class.getName());

    private final RemoteSession session;
    private final long wantedBytes;
    private final AtomicBoolean requested = new AtomicBoolean();
    private final AtomicReference<@Nullable StagingMemory> memory = new AtomicReference<>();
    private volatile boolean closed;

    /// @param wantedBytes 0 for none
    StagingClient(RemoteSession session, long wantedBytes) {
        this.session = session;
        this.wantedBytes = wantedBytes;
    }

    /// Returns a buffer for these bytes, or null if they must be sent.
    PutBuffer.@Nullable StagedBuffer allocate(long bytes) {
        StagingMemory there = memory.get();
        if (there == null) {
            there = openOnce();
        }
        StagingMemory.Allocation allocation = there == null ? null : there.allocate(bytes);
        return allocation == null ? null : new PutBuffer.StagedBuffer(allocation);
    }

    private @Nullable StagingMemory openOnce() {
        SharedStore store = session.sharedStore();
        if (store == null || wantedBytes == 0 || !requested.compareAndSet(false, true)) {
            return null;
        }
        try {
            StagingMemory opened = open(store.files());
            memory.set(opened);
            if (closed) {
                close();
            }
            return opened;
        } catch (IOException | RpcException notHere) {
            if (Thread.currentThread().isInterrupted()) {
                requested.set(false);
            } else {
                LOG.log(
                        System.Logger.Level.INFO,
                        "puts send their bytes, as staging memory is not available: " + notHere.getMessage());
            }
            return null;
        }
    }

    private StagingMemory open(SharedMemoryFiles files) throws IOException, RpcException {
        StagingDescriptor place =
                session.call(MessageType.STAGE, new BodyWriter().i64(wantedBytes), StagingDescriptor::read, 0);
        return StagingMemory.open(files, place);
    }

    /// Ends with the session. Buffers in use stay usable.
    void close() {
        closed = true;
        StagingMemory there = memory.getAndSet(null);
        if (there != null) {
            there.release();
        }
    }
}
