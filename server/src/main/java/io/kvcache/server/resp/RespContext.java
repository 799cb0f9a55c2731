package io.kvcache.server.resp;

import io.kvcache.core.KvCache;
import io.kvcache.core.policy.EvictionPolicyFactory;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.spi.Clock;
import io.kvcache.server.forward.RequestForwarder;
import io.kvcache.server.keyspace.HashSlotOwnership;
import io.kvcache.server.keyspace.KeyspaceRouter;
import io.kvcache.server.net.ConnectionRegistry;
import java.util.List;
import java.util.function.BooleanSupplier;
import java.util.function.LongSupplier;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// The objects that commands work on.
///
/// @param unsavedBytes of values that are in memory alone
/// @param tenant whose clients say the commands
/// @param soleTenant whether there is no other
/// @param keyspaceRouter the values that the commands are for
/// @param serverInfo what the server says of itself
/// @param slotOwnership for clients of Redis Cluster, which are sent to the owners of keys; null for others
/// @param passedOn whether other servers of a cluster pass the commands on, and not clients of Redis Cluster
/// @param forwarder passes commands of clients that know one server on to the owners of keys; null for none
public record RespContext(
        KvCache cache,
        LongSupplier unsavedBytes,
        String tenant,
        boolean soleTenant,
        KeyspaceRouter keyspaceRouter,
        ConnectionRegistry connectionRegistry,
        Clock clock,
        ServerInfo serverInfo,
        @Nullable HashSlotOwnership slotOwnership,
        boolean passedOn,
        @Nullable RequestForwarder forwarder) {

    /// The word of Redis for what a listener is part of.
    String mode() {
        return slotOwnership == null ? "standalone" : "cluster";
    }

    /// The facts about the server that INFO reports.
    ///
    /// @param version of it
    /// @param policy how victims are chosen
    /// @param startedNanos when it started, by the clock of its store
    /// @param hasDisk whether it has a disk
    /// @param diskProblems what is not as it should be of the disks now
    /// @param followsLru whether the policy orders by last use now, as LRU finds more
    public record ServerInfo(
            String version,
            EvictionPolicyFactory policy,
            long startedNanos,
            boolean hasDisk,
            Supplier<List<String>> diskProblems,
            BooleanSupplier followsLru) {

        /// The word of Redis that comes nearest to the policy: `allkeys-lfu` for those that weigh how often a
        /// value is used, `allkeys-lru` for those that go by when it came or was used. None of them evicts as
        /// Redis does.
        String redisPolicy() {
            return policy.equals(PolicyKind.IMPORTANCE) ? "allkeys-lfu" : "allkeys-lru";
        }
    }
}
