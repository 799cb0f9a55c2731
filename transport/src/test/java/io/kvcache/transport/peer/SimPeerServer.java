package io.kvcache.transport.peer;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.cluster.BlockGroup;
import java.util.HashSet;
import java.util.Set;

/// A server of a [PeerSimulation]: its store, whether it runs, and who cannot reach it.
final class SimPeerServer implements AutoCloseable {

    final String name;
    final TieredKvCache store = PeerSimulation.store(BlockGroup.namespace(PeerSimulation.SPACE));
    final Set<String> cut = new HashSet<>();
    boolean down;

    SimPeerServer(String name) {
        this.name = name;
    }

    boolean isReachableFrom(String client) {
        return !down && !cut.contains(client);
    }

    /// Blocks that it has of those of a chain's groups from one on.
    int residentBlocks(BlockChain chain, int from) {
        int found = 0;
        for (int at = from; at < chain.length(); at = BlockGroup.end(chain, at)) {
            BlockGroup group = BlockGroup.of(chain, at);
            found += Math.max(0, store.match(group.chain()).blocks() - (at - group.first()));
        }
        return found;
    }

    @Override
    public void close() {
        store.close();
    }
}
