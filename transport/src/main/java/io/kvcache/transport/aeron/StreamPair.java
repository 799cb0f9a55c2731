package io.kvcache.transport.aeron;

import io.aeron.ExclusivePublication;
import io.aeron.Image;
import io.aeron.Subscription;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/// The two streams of a connection. They go when it is closed and nobody is inside: they are mapped memory,
/// which may not go while somebody copies.
///
/// **Threads.** Any.
final class StreamPair {

    private final AeronDriver media;
    private final Image in;
    private final ExclusivePublication out;
    private final @Nullable Subscription own;

    /// Who is inside, and one until it is closed.
    private final AtomicInteger users = new AtomicInteger(1);

    /// @param media which is released in the end
    /// @param own what the incoming stream belongs to if nothing else does, or null
    StreamPair(AeronDriver media, Image in, ExclusivePublication out, @Nullable Subscription own) {
        this.media = media;
        this.in = in;
        this.out = out;
        this.own = own;
    }

    Image in() {
        return in;
    }

    ExclusivePublication out() {
        return out;
    }

    /// Whether they may be used until [#exit].
    boolean enter() {
        int now = users.get();
        while (now > 0) {
            if (users.compareAndSet(now, now + 1)) {
                return true;
            }
            now = users.get();
        }
        return false;
    }

    void exit() {
        if (users.decrementAndGet() == 0) {
            free();
        }
    }

    /// To be called once.
    void close() {
        exit();
    }

    private void free() {
        try {
            out.close();
            if (own != null) {
                own.close();
            } else if (!in.isClosed() && !in.isEndOfStream()) {
                // What nobody reads would hold up the sender for as long as it stays.
                in.reject("the connection is closed");
            }
        } catch (RuntimeException gone) {
            System.getLogger(StreamPair.class.getName())
                    .log(System.Logger.Level.DEBUG, "the driver went before a stream did", gone);
        } finally {
            media.release();
        }
    }
}
