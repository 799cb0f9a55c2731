package io.kvcache.spring;

/// The kinds of cache that the starter opens.
public enum CacheMode {
    /// A store in this JVM: [io.kvcache.tiers.TieredKvCache].
    EMBEDDED,
    /// One server: [io.kvcache.transport.client.RemoteKvCache].
    REMOTE,
    /// All servers of a cluster as one cache: [io.kvcache.transport.peer.ClusteredKvCache].
    CLUSTER
}
