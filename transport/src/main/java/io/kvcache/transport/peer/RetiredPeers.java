package io.kvcache.transport.peer;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/// Connections to servers that are gone from the view. Calls that began before may still use them, so they are closed
/// a minute later at the earliest.
///
/// **Threads.** To be used under a lock of the owner's.
final class RetiredPeers {

    private static final long KEPT_NANOS = TimeUnit.MINUTES.toNanos(1);

    private final List<Retired> retired = new ArrayList<>();

    private record Retired(Peer peer, long sinceNanos) {}

    void add(Peer peer, long nowNanos) {
        retired.add(new Retired(peer, nowNanos));
    }

    /// Closes those that nothing uses any more.
    void closeUnused(long nowNanos) {
        retired.removeIf(each -> {
            ClusterConnection connection = each.peer.connection();
            boolean unused = nowNanos - each.sinceNanos > KEPT_NANOS
                    && (connection == null || !connection.isConnected() || connection.openHandles() == 0);
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
