package io.kvcache.server.resp;

import io.kvcache.server.quota.ByteBudget;
import org.jspecify.annotations.Nullable;

/// The heap that the arguments of one connection's request take until it is answered. A little is every
/// connection's own; beyond it all connections share what there is, so that clients who say much and finish nothing
/// cannot end the server.
///
/// **Threads.** The connection's loop.
final class Arguments {

    /// Of one request.
    private static final int OWN_BYTES = 64 << 10;

    /// Of what waits for EXEC, as long as the client likes: of ten thousand connections 40 MiB.
    private static final int OWN_WAITING_BYTES = 4 << 10;

    /// What an array takes beside its bytes.
    static final int EACH_BYTES = 32;

    /// What a value takes beside its slot.
    private static final int VALUE_BYTES = 256;

    private final ByteBudget shared;
    private final @Nullable ByteBudget waiting;
    private final int ownBytes;
    private long bytes;
    private long taken;

    /// @param shared by all connections
    Arguments(ByteBudget shared) {
        this(shared, null, OWN_BYTES);
    }

    private Arguments(ByteBudget shared, @Nullable ByteBudget waiting, int ownBytes) {
        this.shared = shared;
        this.waiting = waiting;
        this.ownBytes = ownBytes;
    }

    /// The same for what waits for EXEC.
    ///
    /// @param waiting part of it that all such may take: clients may wait as long as they like,
    ///     and others have requests to make meanwhile
    static Arguments waiting(ByteBudget shared, ByteBudget waiting) {
        return new Arguments(shared, waiting, OWN_WAITING_BYTES);
    }

    /// What all connections may take together for the same.
    long sharedBytes() {
        return (waiting == null ? shared : waiting).limitBytes();
    }

    /// What all connections of a server share: an eighth of its heap.
    static ByteBudget ofHeap() {
        return new ByteBudget(Runtime.getRuntime().maxMemory() / 8);
    }

    /// An argument of so many bytes is about to be read.
    ///
    /// @throws RespException when there is no room for it
    void add(long argument) throws RespException {
        take(argument + EACH_BYTES);
    }

    /// A value is about to be read.
    ///
    /// @throws RespException when there is no room for what has to be known of it
    void addValue() throws RespException {
        take(VALUE_BYTES);
    }

    private void take(long more) throws RespException {
        bytes += more;
        long beyond = bytes - ownBytes - taken;
        if (beyond <= 0) {
            return;
        }
        if (waiting != null && !waiting.tryAcquire(beyond)) {
            throw new RespException("transactions take all of the " + waiting.limitBytes()
                    + " bytes of heap that there are for what waits for EXEC; say it again later, or without MULTI");
        }
        if (!shared.tryAcquire(beyond)) {
            if (waiting != null) {
                waiting.release(beyond);
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
            if (waiting != null) {
                waiting.release(taken);
            }
            taken = 0;
        }
    }
}
