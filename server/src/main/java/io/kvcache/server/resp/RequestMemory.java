package io.kvcache.server.resp;

import io.kvcache.server.quota.ByteBudget;
import io.kvcache.server.resp.RespDecoder.RespException;
import org.jspecify.annotations.Nullable;

/// The heap that the arguments of one connection's request take until it is answered. A little is every
/// connection's own; beyond it all connections share what there is, so that clients that send much and finish
/// nothing cannot end the server.
///
/// **Threads.** The connection's loop.
final class RequestMemory {

    /// Of one request.
    private static final int FREE_BYTES = 64 << 10;

    /// Of what waits for EXEC, as long as the client likes: of ten thousand connections 40 MiB.
    private static final int FREE_QUEUED_BYTES = 4 << 10;

    /// What an array takes beside its bytes.
    static final int ARGUMENT_OVERHEAD_BYTES = 32;

    /// What a value takes beside its slot.
    private static final int VALUE_OVERHEAD_BYTES = 256;

    private final ByteBudget shared;
    private final @Nullable ByteBudget queued;
    private final int freeBytes;
    private long bytes;
    private long taken;

    /// @param shared by all connections
    RequestMemory(ByteBudget shared) {
        this(shared, null, FREE_BYTES);
    }

    private RequestMemory(ByteBudget shared, @Nullable ByteBudget waiting, int ownBytes) {
        this.shared = shared;
        this.queued = waiting;
        this.freeBytes = ownBytes;
    }

    /// The same for what waits for EXEC.
    ///
    /// @param waiting part of it that all such may take: clients may wait as long as they like,
    ///     and others have requests to make meanwhile
    static RequestMemory forQueued(ByteBudget shared, ByteBudget waiting) {
        return new RequestMemory(shared, waiting, FREE_QUEUED_BYTES);
    }

    /// What all connections may take together for the same.
    long sharedBytes() {
        return (queued == null ? shared : queued).limitBytes();
    }

    /// What all connections of a server share: an eighth of its heap.
    static ByteBudget heapBudget() {
        return new ByteBudget(Runtime.getRuntime().maxMemory() / 8);
    }

    /// An argument of so many bytes is about to be read.
    ///
    /// @throws RespException when there is no room for it
    void reserveArgument(long argument) throws RespException {
        reserve(argument + ARGUMENT_OVERHEAD_BYTES);
    }

    /// A value is about to be read.
    ///
    /// @throws RespException when there is no room for what has to be known of it
    void reserveValue() throws RespException {
        reserve(VALUE_OVERHEAD_BYTES);
    }

    private void reserve(long more) throws RespException {
        bytes += more;
        long beyond = bytes - freeBytes - taken;
        if (beyond <= 0) {
            return;
        }
        if (queued != null && !queued.tryAcquire(beyond)) {
            throw new RespException("transactions take all of the " + queued.limitBytes()
                    + " bytes of heap that there are for what waits for EXEC; say it again later, or without MULTI");
        }
        if (!shared.tryAcquire(beyond)) {
            if (queued != null) {
                queued.release(beyond);
            }
            throw new RespException("requests take all of the " + shared.limitBytes()
                    + " bytes of heap that there are for their arguments; say it again later, or in smaller requests");
        }
        taken += beyond;
    }

    /// The request is answered, or given up.
    void release() {
        bytes = 0;
        if (taken > 0) { // for most requests nothing was, and what loops share is dear to touch
            shared.release(taken);
            if (queued != null) {
                queued.release(taken);
            }
            taken = 0;
        }
    }
}
