package io.kvcache.spring.actuate;

import io.kvcache.core.KvCache;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.client.RemoteKvCache;
import io.kvcache.transport.cluster.NodeInfo;
import io.kvcache.transport.peer.ClusteredKvCache;
import java.util.List;

/// What kind a cache is of, and the servers behind it.
///
/// @param mode `embedded`, `remote`, `cluster`, or the name of a class that the application brings
/// @param servers addresses: the server of a remote cache, all servers of a cluster
/// @param connected those of them that are connected now
record CacheServers(String mode, List<String> servers, List<String> connected) {

    static CacheServers of(KvCache cache) {
        return switch (cache) {
            case TieredKvCache _ -> new CacheServers("embedded", List.of(), List.of());
            case RemoteKvCache remote -> {
                List<String> server = List.of(remote.server());
                yield new CacheServers("remote", server, remote.isConnected() ? server : List.of());
            }
            case ClusteredKvCache cluster -> {
                List<String> all =
                        cluster.view().nodes().stream().map(NodeInfo::address).toList();
                yield new CacheServers("cluster", all, cluster.connectedServers());
            }
            default -> new CacheServers(cache.getClass().getName(), List.of(), List.of());
        };
    }
}
