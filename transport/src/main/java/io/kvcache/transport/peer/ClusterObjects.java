package io.kvcache.transport.peer;

import io.kvcache.core.KvCache;
import io.kvcache.core.ObjectHint;
import io.kvcache.core.ObjectStore;
import io.kvcache.core.ObjectView;
import io.kvcache.core.ObjectWriter;
import io.kvcache.core.identity.Namespace;
import io.kvcache.transport.peer.ClusterBlocks.NoRoomWriter;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import org.jspecify.annotations.Nullable;

/// The objects of a clustered cache: each is asked for at the server of its slot.
///
/// **Threads.** Any.
final class ClusterObjects implements ObjectStore {

    private final ClusterMembers members;
    private final PeerClock clock;
    private final long connectNanos;

    /// @param connectNanos how long a call waits for a server that is being connected
    ClusterObjects(ClusterMembers members, PeerClock clock, long connectNanos) {
        this.members = members;
        this.clock = clock;
        this.connectNanos = connectNanos;
    }

    /// The owner's cache, or null when it is not reached.
    private @Nullable KvCache owner(Namespace namespace, byte[] key) {
        ClusterRoute.Reached owner = members.route().reachOwner(key, namespace, clock.deadlineAfter(connectNanos));
        return owner == null ? null : owner.connection().cache();
    }

    @Override
    public ObjectWriter putObject(Namespace namespace, byte[] key, long bytes, Duration timeout) {
        KvCache owner = owner(namespace, key);
        return owner == null ? new NoRoomWriter() : owner.putObject(namespace, key, bytes, timeout);
    }

    @Override
    public boolean storeObject(Namespace namespace, byte[] key, MemorySegment value, Duration timeout) {
        KvCache owner = owner(namespace, key);
        return owner != null && owner.storeObject(namespace, key, value, timeout);
    }

    @Override
    public @Nullable ObjectView getObject(Namespace namespace, byte[] key, Duration timeout) {
        KvCache owner = owner(namespace, key);
        return owner == null ? null : owner.getObject(namespace, key, timeout);
    }

    @Override
    public CompletionStage<@Nullable ObjectView> fetchObject(
            Namespace namespace, byte[] key, Duration timeout, Executor executor) {
        KvCache owner = owner(namespace, key);
        return owner == null
                ? CompletableFuture.supplyAsync(() -> null, executor)
                : owner.fetchObject(namespace, key, timeout, executor);
    }

    @Override
    public boolean containsObject(Namespace namespace, byte[] key) {
        KvCache owner = owner(namespace, key);
        return owner != null && owner.containsObject(namespace, key);
    }

    @Override
    public boolean dropObject(Namespace namespace, byte[] key) {
        KvCache owner = owner(namespace, key);
        if (owner == null) {
            throw new UncheckedIOException(new IOException("the object's server is not reached, and may keep it"));
        }
        return owner.dropObject(namespace, key);
    }

    @Override
    public int hintObjects(Namespace namespace, List<byte[]> keys, ObjectHint hint) {
        Map<KvCache, List<byte[]>> byOwner = new LinkedHashMap<>();
        for (byte[] key : keys) {
            KvCache owner = owner(namespace, key);
            if (owner != null) {
                byOwner.computeIfAbsent(owner, _ -> new ArrayList<>()).add(key);
            }
        }
        return byOwner.entrySet().stream()
                .mapToInt(each -> each.getKey().hintObjects(namespace, each.getValue(), hint))
                .sum();
    }
}
