package io.kvcache.transport.net;

import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/// State of a connection over any carrier: why it ended, and since when it has made no progress.
///
/// **Threads.** Any, except where one is named.
public final class ConnectionState {

    private final AtomicReference<@Nullable DisconnectReason> reason = new AtomicReference<>();

    /// When bytes last moved that are being waited for, or 0.
    private volatile long writeSince;

    private volatile long readSince;
    private boolean notified;

    /// Returns whether the connection is open.
    public boolean isOpen() {
        return reason.get() == null;
    }

    /// Ends it; answers whether this was the first to do so.
    public boolean close(DisconnectReason why) {
        return reason.compareAndSet(null, why);
    }

    /// Tells the handler of the end, once. For the thread that pumps.
    public void notifyClosed(FrameHandler handler) {
        DisconnectReason why = reason.get();
        if (why != null && !notified) {
            notified = true;
            handler.onClosed(why);
        }
    }

    /// Bytes are to go out, or some have.
    public void onWriteProgress() {
        writeSince = nonZeroNanoTime();
    }

    /// All have gone out, or none will any more.
    public void onWriteComplete() {
        writeSince = 0;
    }

    /// Bytes have come in.
    ///
    /// @param inFrame whether more of the same frame has to come
    public void onBytesReceived(boolean inFrame) {
        readSince = inFrame ? nonZeroNanoTime() : 0;
    }

    /// As [FrameConnection#stalledNanos].
    public long stalledNanos() {
        long now = System.nanoTime();
        return Math.max(since(writeSince, now), since(readSince, now));
    }

    /// Never 0, which means none.
    private static long nonZeroNanoTime() {
        return System.nanoTime() | 1;
    }

    private static long since(long start, long now) {
        return start == 0 ? 0 : Math.max(0, now - start);
    }
}
