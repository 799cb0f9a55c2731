package io.kvcache.tiers;

import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.CacheStats;
import io.kvcache.core.Clock;
import io.kvcache.core.Hint;
import io.kvcache.core.KvCache;
import io.kvcache.core.Match;
import io.kvcache.core.ObjectView;
import io.kvcache.core.ObjectWriter;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.PutSummary;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.event.EventStream;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.store.HostStore;
import io.kvcache.core.store.NamespaceEntry;
import io.kvcache.core.store.Reserved;
import io.kvcache.core.tree.Handle;
import java.lang.foreign.MemorySegment;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// A store embedded in this JVM, on host memory.
///
/// ```java
/// try (var cache = TieredKvCache.builder().hostBytes(4L << 30).build()) {
///     cache.register(namespace);
///     BlockChain chain = BlockChain.of(namespace, tokens);
///     try (BlockTable table = cache.acquire(chain)) {
///         // prefill only what is missing: tokens from table.readyBlocks() * namespace.blockTokens() on
///     }
/// }
/// ```
///
/// **Ownership.** Closing the store gives its memory back. While tables, views or writers are open it waits for
/// [TieredKvCacheBuilder#closeWait], then leaves the memory mapped, reports who still holds what, and returns;
/// nothing is ever unmapped under an open table.
///
/// **Threads.** Safe for any number. A virtual thread is never pinned to its carrier by anything but the short
/// lock.
public final class TieredKvCache implements KvCache {

    private final HostTable.Source source;
    private final HostStore store;
    private final Holders holders;
    private final Waiting waiting;
    private final Hints hints;
    private final ObjectVerbs objects;
    private final Closing closing;

    TieredKvCache(HostTable.Source source, Clock clock, Closing closing) {
        this.source = source;
        store = source.store();
        holders = source.holders();
        waiting = new Waiting(clock);
        hints = new Hints(store, clock);
        objects = new ObjectVerbs(source, waiting);
        this.closing = closing;
    }

    /// How a store is set up; see [TieredKvCacheBuilder].
    public static TieredKvCacheBuilder builder() {
        return new TieredKvCacheBuilder();
    }

    @Override
    public void register(Namespace namespace) {
        holders.requireOpen();
        store.register(namespace);
    }

    @Override
    public Match match(BlockChain chain) {
        holders.requireOpen();
        store.require(chain.namespace());
        int blocks = store.lookup().match(chain, chain.length());
        return blocks == 0 ? Match.NOTHING : new Match(0, blocks, 0);
    }

    @Override
    public BlockTable acquire(BlockChain chain, int from, long timeoutNanos) {
        if (from < 0 || from > chain.length()) {
            throw new IndexOutOfBoundsException("from is " + from + "; this chain takes 0 to " + chain.length());
        }
        Waiting.requireNotNegative(timeoutNanos);
        NamespaceEntry entry = store.require(chain.namespace());
        Hold hold = holders.enter(chain);
        long deepest = store.lookup().pinDeepest(chain);
        int here = Handle.found(deepest) ? store.records().depth(Handle.record(deepest)) + 1 : 0;
        int found = Math.max(0, here - from);
        entry.asked(chain.length() - from, found);
        if (found > 0) {
            return new HostTable(source, hold, Handle.record(deepest), from, entry.blockBytes());
        }
        if (here > 0) {
            store.lookup().unpin(Handle.record(deepest));
        }
        holders.leave(hold);
        return new EmptyTable(from);
    }

    @Override
    public BlockWriter put(BlockChain chain, int index, int part, long timeoutNanos) {
        if (index < 0 || index >= chain.length()) {
            throw new IndexOutOfBoundsException(
                    "block " + index + " of a chain of " + chain.length() + "; full blocks only");
        }
        Waiting.requireNotNegative(timeoutNanos);
        NamespaceEntry entry = store.require(chain.namespace());
        int parts = entry.requireParts();
        if (part < 0 || part >= parts) {
            throw new IllegalArgumentException(
                    "part is " + part + "; " + entry.namespace() + " takes 0 to " + (parts - 1));
        }
        Hold hold = holders.enter(chain);
        try {
            Reserved reserved = waiting.reserve(timeoutNanos, () -> reserve(entry, chain, index));
            return new HostBlockWriter(new Filling(source, hold, reserved), entry.blockBytes());
        } catch (RuntimeException failed) {
            holders.leave(hold);
            throw failed;
        }
    }

    private Reserved reserve(NamespaceEntry entry, BlockChain chain, int index) {
        Reserved reserved = store.reserve(entry, chain, index);
        if (reserved.outcome() != PutOutcome.NO_ROOM) {
            return reserved;
        }
        hints.sweep();
        return store.reserve(entry, chain, index);
    }

    @Override
    public PutSummary putAll(BlockChain chain, int from, List<MemorySegment> blocks, long timeoutNanos) {
        if (from < 0 || from > chain.length() - blocks.size()) {
            throw new IndexOutOfBoundsException(
                    blocks.size() + " blocks from " + from + "; the chain has " + chain.length());
        }
        Waiting.requireNotNegative(timeoutNanos);
        long start = waiting.nanos();
        int stored = 0;
        int present = 0;
        PutOutcome last = PutOutcome.PRESENT;
        for (int i = 0; i < blocks.size(); i++) {
            try (BlockWriter writer = put(chain, from + i, 0, waiting.left(start, timeoutNanos))) {
                last = writer.outcome();
                if (last == PutOutcome.RESERVED) {
                    writer.copyFrom(blocks.get(i));
                    if (writer.seal() == SealOutcome.DROPPED) {
                        return new PutSummary(stored, present, PutOutcome.NO_PARENT);
                    }
                    stored++;
                } else if (last.continues()) {
                    present++;
                } else {
                    return new PutSummary(stored, present, last);
                }
            }
        }
        return new PutSummary(stored, present, last);
    }

    @Override
    public int drop(BlockChain chain, int from) {
        if (from < 0 || from > chain.length()) {
            throw new IndexOutOfBoundsException("from is " + from + "; this chain takes 0 to " + chain.length());
        }
        holders.requireOpen();
        store.require(chain.namespace());
        return from == chain.length() ? 0 : store.drop(chain.keyHi(from), chain.keyLo(from));
    }

    @Override
    public long drop(Namespace namespace) {
        holders.requireOpen();
        return store.dropAll(store.require(namespace));
    }

    @Override
    public boolean hint(Hint hint) {
        holders.requireOpen();
        store.require(hint.chain().namespace());
        return hints.take(hint);
    }

    @Override
    public ObjectWriter putObject(Namespace namespace, byte[] key, long bytes, long timeoutNanos) {
        Waiting.requireNotNegative(timeoutNanos);
        return objects.put(namespace, key, bytes, timeoutNanos);
    }

    @Override
    public @Nullable ObjectView getObject(Namespace namespace, byte[] key) {
        holders.requireOpen();
        return objects.get(namespace, key);
    }

    @Override
    public boolean containsObject(Namespace namespace, byte[] key) {
        holders.requireOpen();
        return objects.contains(namespace, key);
    }

    @Override
    public boolean dropObject(Namespace namespace, byte[] key) {
        holders.requireOpen();
        return objects.drop(namespace, key);
    }

    @Override
    public CacheStats stats() {
        holders.requireOpen();
        hints.sweep();
        return store.inspection().stats(holders.count());
    }

    @Override
    public EventStream events() {
        holders.requireOpen();
        return store.inspection();
    }

    /// Checks every link, count and slot of the store against the others. For tests and for a doubtful
    /// operator.
    ///
    /// @throws AssertionError that names what does not agree
    public void validate() {
        holders.requireOpen();
        store.inspection().validate();
    }

    @Override
    public void close() {
        hints.close();
        closing.run();
    }
}
