package io.kvcache.transport.peer;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;

/// Connections to servers that are gone from the view. Calls that began before may still use them, so they are closed
/// a minute later at the earliest.
///
/// **Threads.** To be used under a lock of the owner's.
///
/// @param <C> what a connection can do
final class RetiredPeers<C extends PeerConnection> {

    private static final long KEPT_NANOS = TimeUnit.MINUTES.toNanos(1);

    private final Predicate<C> isInUse;
    private final List<Retired<C>> retired = new ArrayList<>();

    private record Retired<C extends PeerConnection>(Peer<C> peer, long sinceNanos) {}

    /// @param isInUse whether something of a connection is open
    RetiredPeers(Predicate<C> isInUse) {
        this.isInUse = isInUse;
    }

    void add(Peer<C> peer, long nowNanos) {
        retired.add(new Retired<>(peer, nowNanos));
    }

    /// Closes those that nothing uses any more.
    void closeUnused(long nowNanos) {
        retired.removeIf(each -> {
            C connection = each.peer.connection();
            boolean unused = nowNanos - each.sinceNanos > KEPT_NANOS
                    && (connection == null || !connection.isConnected() || !isInUse.test(connection));
            if (unused) {
                each.peer.close();
            }
            return unused;
        });
    }

    void closeAll() {
        retired.forEach(each -> each.peer.close());
        retired.clear();
    }
}
