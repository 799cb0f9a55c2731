package io.kvcache.transport.peer;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.transport.cluster.BlockGroup;
import io.kvcache.transport.cluster.ClusterNode;
import io.kvcache.transport.cluster.Placement;
import java.util.List;
import java.util.stream.IntStream;

/// Which peers a store asks for which blocks.
///
/// **Threads.** Any.
interface PeerDirectory extends AutoCloseable {

    /// Returns the group of a block as peers know it.
    BlockGroup group(BlockChain chain, int block);

    /// Returns the index behind the last block of a block's group, or the length of the chain if that is less.
    int groupEnd(BlockChain chain, int block);

    /// Returns the namespace in which peers keep a namespace's groups.
    Namespace groups(Namespace namespace);

    /// Returns the peers to ask for a group, the first choice first; empty to ask none.
    List<Peer<PeerCache>> holders(BlockGroup group);

    /// Returns the peers that a group of this store is given to.
    List<Peer<PeerCache>> heirs(BlockGroup group);

    /// Returns the peers that must hear of drops.
    List<Peer<PeerCache>> mirrors();

    /// Returns whether a holder should let go of a group that was fetched from it.
    boolean isMove(BlockGroup group);

    /// Returns whether what this store fetches of a group is a copy, as another server owns it.
    boolean isCopy(BlockGroup group);

    /// All peers, for statistics.
    List<Peer<PeerCache>> all();

    @Override
    void close();

    /// A fixed list of peers, which share the groups of all stores above them.
    final class Fixed implements PeerDirectory {

        private final List<Peer<PeerCache>> peers;
        private final Placement placement;
        private final int replicas;

        Fixed(List<Peer<PeerCache>> peers, int replicas) {
            this.peers = List.copyOf(peers);
            this.replicas = Math.min(replicas, peers.size());
            placement = new Placement(
                    "",
                    peers.stream().map(peer -> ClusterNode.named(peer.name())).toList());
        }

        @Override
        public BlockGroup group(BlockChain chain, int block) {
            return BlockGroup.of(chain, block);
        }

        @Override
        public int groupEnd(BlockChain chain, int block) {
            return BlockGroup.end(chain, block);
        }

        @Override
        public Namespace groups(Namespace namespace) {
            return BlockGroup.namespace(namespace);
        }

        @Override
        public List<Peer<PeerCache>> holders(BlockGroup group) {
            BlockKey key = group.key();
            return IntStream.of(placement.owners(key, replicas))
                    .mapToObj(peers::get)
                    .toList();
        }

        @Override
        public List<Peer<PeerCache>> heirs(BlockGroup group) {
            return holders(group);
        }

        @Override
        public List<Peer<PeerCache>> mirrors() {
            return peers;
        }

        @Override
        public boolean isMove(BlockGroup group) {
            return false;
        }

        @Override
        public boolean isCopy(BlockGroup group) {
            return false;
        }

        @Override
        public List<Peer<PeerCache>> all() {
            return peers;
        }

        @Override
        public void close() {
            peers.forEach(Peer::close);
        }
    }
}
