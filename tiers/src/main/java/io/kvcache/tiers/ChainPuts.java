package io.kvcache.tiers;

import io.kvcache.core.BlockWriter;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.PutSummary;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.store.HostStore;
import io.kvcache.core.store.NamespaceEntry;
import io.kvcache.core.store.PutReservation;
import java.lang.foreign.MemorySegment;
import java.util.List;

/// Writers of blocks that are named by their chain.
///
/// **Threads.** Any.
final class ChainPuts {

    private final HostTable.Source source;
    private final HostStore store;
    private final Waiting waiting;
    private final Onboarding onboarding;
    private final Hints hints;
    private final UseListeners listeners;

    ChainPuts(HostTable.Source source, Waiting waiting, Onboarding onboarding, Hints hints, UseListeners listeners) {
        this.source = source;
        store = source.store();
        this.waiting = waiting;
        this.onboarding = onboarding;
        this.hints = hints;
        this.listeners = listeners;
    }

    /// As [io.kvcache.core.KvCache#put].
    BlockWriter put(BlockChain chain, int index, int part, long timeoutNanos) {
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
        Hold hold = source.holders().enter(chain);
        try {
            PutReservation reserved = room(entry, chain, index, timeoutNanos);
            if (reserved.outcome() == PutOutcome.RESERVED && part == 0 && listeners.any()) {
                BlockKey after = index == 0 ? null : new BlockKey(chain.keyHi(index - 1), chain.keyLo(index - 1));
                BlockKey key = new BlockKey(chain.keyHi(index), chain.keyLo(index));
                listeners.put(chain.namespace(), key, after, entry.blockBytes(), false);
            }
            return new HostBlockWriter(new Filling(source, hold, reserved), entry.blockBytes());
        } catch (RuntimeException failed) {
            source.holders().leave(hold);
            throw failed;
        }
    }

    private PutReservation room(NamespaceEntry entry, BlockChain chain, int index, long timeoutNanos) {
        PutReservation reserved =
                waiting.reserve(timeoutNanos, sparing -> hints.room(() -> store.reserve(entry, chain, index, sparing)));
        if (reserved.outcome() == PutOutcome.RESERVED && index > 0) {
            onboarding.bringParents(chain, index, reserved.record());
        }
        return reserved;
    }

    /// As [io.kvcache.core.KvCache#putAll].
    PutSummary putAll(BlockChain chain, int from, List<MemorySegment> blocks, long timeoutNanos) {
        if (from < 0 || from > chain.length() - blocks.size()) {
            throw new IndexOutOfBoundsException(
                    blocks.size() + " blocks from " + from + "; the chain has " + chain.length());
        }
        Waiting.requireNotNegative(timeoutNanos);
        long start = waiting.nanos();
        return CopiedRun.put(blocks, i -> put(chain, from + i, 0, waiting.left(start, timeoutNanos)));
    }
}
