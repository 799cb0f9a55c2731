package io.kvcache.transport.peer;

import io.kvcache.core.event.CacheEvent;
import io.kvcache.core.event.StoreSnapshot;
import io.kvcache.core.event.TierKind;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.transport.cluster.BlockGroup;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.jspecify.annotations.Nullable;

/// Chains of the groups that a store has in memory, for a server that gives them away.
///
/// A group is a tree: chains that share its first block. Each chain here ends at a block that has no block in memory
/// below it, so all of them together have all blocks.
///
/// **Threads.** Any number take chains.
final class GroupHandover {

    /// Most blocks that are given: some 100 MiB of heap for their keys.
    private static final int MAX_BLOCKS = 1 << 20;

    private final Queue<BlockChain> chains;

    private GroupHandover(Queue<BlockChain> chains) {
        this.chains = chains;
    }

    /// Returns the next chain, or null when there is none left.
    @Nullable
    BlockChain next() {
        return chains.poll();
    }

    /// Returns the number of chains that no thread has taken.
    int left() {
        return chains.size();
    }

    static GroupHandover of(StoreSnapshot snapshot) {
        Map<BlockKey, CacheEvent> blocks = new HashMap<>();
        Set<BlockKey> parents = new HashSet<>();
        for (CacheEvent event : snapshot.stored()) {
            Namespace namespace = snapshot.namespaces().get(event.namespaceId());
            boolean wanted = event.tier() == TierKind.HOST && namespace != null && BlockGroup.isGroups(namespace);
            if (wanted && blocks.size() < MAX_BLOCKS) {
                blocks.put(key(event), event);
                parents.add(parent(event));
            }
        }
        Queue<BlockChain> chains = new ConcurrentLinkedQueue<>();
        for (CacheEvent event : blocks.values()) {
            Namespace namespace = snapshot.namespaces().get(event.namespaceId());
            List<BlockKey> path = parents.contains(key(event)) ? List.of() : path(event, blocks);
            if (namespace != null && !path.isEmpty()) {
                chains.add(BlockChain.ofKeys(namespace, path));
            }
        }
        return new GroupHandover(chains);
    }

    /// Returns the keys from the group's first block to this one; empty when one is not in memory.
    private static List<BlockKey> path(CacheEvent last, Map<BlockKey, CacheEvent> blocks) {
        Deque<BlockKey> path = new ArrayDeque<>();
        CacheEvent at = last;
        while (at != null) {
            path.addFirst(key(at));
            if (at.depth() == 0) {
                return new ArrayList<>(path);
            }
            at = blocks.get(parent(at));
        }
        return List.of();
    }

    private static BlockKey key(CacheEvent event) {
        return new BlockKey(event.keyHi(), event.keyLo());
    }

    private static BlockKey parent(CacheEvent event) {
        return new BlockKey(event.parentHi(), event.parentLo());
    }
}
