package io.kvcache.bench.cluster;

import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.KvCache;
import io.kvcache.core.check.BlockContent;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.transport.client.RemoteKvCache;
import io.kvcache.transport.cluster.BlockGroup;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.stream.IntStream;

/// A group of blocks at single servers of a cluster, by clients that know one server each. So what is dropped at one of
/// them reaches the others by their messages alone.
///
/// **Threads.** One at a time.
final class GroupChain {

    private static final int BLOCK_TOKENS = 16;
    private static final int BLOCKS = 4;
    private static final Namespace SPACE =
            BlockGroup.namespace(Namespace.of("groups", BlockShape.kv(4, 1, 1024, BLOCK_TOKENS, Dtype.BF16)));
    private static final Duration TIMEOUT = Duration.ofSeconds(10);
    private static final Duration POLL = Duration.ofMillis(50);

    private final BlockChain chain;

    /// @param number another one for another chain
    GroupChain(int number) {
        chain = BlockChain.of(
                SPACE,
                IntStream.range(0, BLOCKS * BLOCK_TOKENS)
                        .map(i -> 1000 * number + i)
                        .toArray());
    }

    private static RemoteKvCache connect(ServerNode server) {
        RemoteKvCache cache = ClientTransport.TCP
                .connection(server.address())
                .requestTimeout(TIMEOUT)
                .localOnly(true)
                .connect();
        cache.register(SPACE);
        return cache;
    }

    void put(ServerNode server) {
        try (RemoteKvCache cache = connect(server)) {
            for (int block = 0; block < BLOCKS; block++) {
                try (BlockWriter writer = cache.put(chain, block, 0, KvCache.NO_WAIT)) {
                    BlockContent.of(chain.key(block)).fill(writer.segment());
                    var _ = writer.seal();
                }
            }
        }
    }

    /// Returns whether a server has all of it, as it was put.
    boolean isAt(ServerNode server) {
        try (RemoteKvCache cache = connect(server);
                BlockTable table = cache.acquire(chain, 0, TIMEOUT)) {
            int ready = table.await(BLOCKS, TIMEOUT);
            for (int block = 0; block < ready; block++) {
                BlockContent.of(chain.key(block)).requireEqual(table.segment(block));
            }
            return ready == BLOCKS;
        }
    }

    private boolean isGone(ServerNode server) {
        try (RemoteKvCache cache = connect(server)) {
            return cache.match(chain).blocks() == 0;
        }
    }

    void drop(ServerNode server) {
        try (RemoteKvCache cache = connect(server)) {
            cache.drop(chain, 0);
        }
    }

    /// Waits until no server has any of it.
    ///
    /// @return how long that took
    /// @throws IOException when it takes too long
    Duration awaitGone(List<ServerNode> servers, Duration limit) throws IOException, InterruptedException {
        long start = System.nanoTime();
        for (ServerNode server : servers) {
            while (!isGone(server)) {
                if (System.nanoTime() - start > limit.toNanos()) {
                    throw new IOException("%s has blocks that were dropped at another server %s s ago"
                            .formatted(server.name(), limit.toSeconds()));
                }
                Thread.sleep(POLL);
            }
        }
        return Duration.ofNanos(System.nanoTime() - start);
    }
}
