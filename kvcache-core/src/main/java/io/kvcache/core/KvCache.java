package io.kvcache.core;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.ByteRange;
import io.kvcache.core.identity.Namespace;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.List;

/// A cache of KV blocks and opaque objects, embedded in this process or served by another one.
///
/// A prompt's tokens become a [BlockChain] by [#chain]. [#match] counts its leading blocks in the cache,
/// [#acquire] pins them, and [#put] adds the blocks that were computed. Every failure shortens the prefix: a
/// get returns the first n blocks, and n may be 0. The bytes returned are always the bytes that were put.
///
/// This interface holds what every cache does with blocks. [ObjectStore] adds opaque objects, and [CacheAdmin]
/// statistics, events and durability. Every cache has these three. A cache whose memory lies in this process is
/// also a [LocalKvCache].
///
/// **Namespaces.** Register a namespace before using it. A chain or object key of an unregistered namespace throws
/// `IllegalArgumentException`, and so does an index, part, size or key out of range: these are errors of the caller.
/// A full store, a block that another writer fills, and an expired timeout are outcomes, returned as values.
///
/// **Threads.** Safe for any number of threads. Only methods with a timeout may wait, and no longer than it.
public interface KvCache extends ObjectStore, CacheAdmin, AutoCloseable {

    /// Makes a namespace usable; registering it again is harmless.
    ///
    /// @throws IllegalArgumentException when a namespace that differs only in its parts is registered already (the
    ///     message shows both shapes), when a block does not fit the store, or when there are too many namespaces
    void register(Namespace namespace);

    /// The chain of a prompt, equal to [BlockChain#of].
    ///
    /// The caches of this project remember the chains of earlier prompts: of a prompt that continues one of
    /// them, or shares a beginning with it, they compare what is known and hash what is new. They spend a
    /// thirty-second of the heap on that, 64 MiB at most.
    ///
    /// @param namespace need not be registered
    /// @param tokens any int32 is a token; not kept
    /// @throws IllegalStateException when the namespace has no parts
    default BlockChain chain(Namespace namespace, int[] tokens) {
        return BlockChain.of(namespace, tokens);
    }

    /// Counts the leading blocks of the chain that are here, by tier. Moves and pins nothing.
    Match match(BlockChain chain);

    /// Counts the leading blocks that [#acquire] with this timeout would return.
    ///
    /// Blocks in a slower tier are left out where computing them takes less time than loading them, as far as the
    /// store knows what computing takes.
    ///
    /// @param timeout how long the blocks may take to arrive
    Match match(BlockChain chain, Duration timeout);

    /// Pins the leading blocks that are here, from block `from` on, and returns at once. Of a namespace with
    /// windows or states, as many as have all that a match needs, and these windows and states too:
    /// [BlockTable#part].
    ///
    /// Blocks in slower tiers go on arriving in chain order until the timeout; the table may end early. Close the
    /// table to release the blocks.
    ///
    /// @param from first block wanted, `0 <= from <= chain.length()`
    /// @param timeout how long blocks may go on arriving, from now; zero takes what is resident
    BlockTable acquire(BlockChain chain, int from, Duration timeout);

    /// As [#acquire(BlockChain, int, Duration)], but blocks on disk arrive layer by layer: the first
    /// `layersAStep` layers of all of them, then the next ones. So an engine computes the first layers while the
    /// others arrive: [BlockTable#awaitLayers].
    ///
    /// Blocks become ready ([BlockTable#readyEnd]) with their last layers, all at about the same time. Blocks
    /// that cannot be read in part arrive whole with the first step, as do blocks of a cache that has no such
    /// steps, as over a network.
    ///
    /// @param layersAStep 1 and up; a step is rounded up to 64 KiB of each block
    /// @throws IllegalArgumentException when `layersAStep` is less than 1
    default BlockTable acquireByLayers(BlockChain chain, int from, Duration timeout, int layersAStep) {
        if (layersAStep < 1) {
            throw new IllegalArgumentException("layersAStep is " + layersAStep + "; it takes 1 and up");
        }
        return acquire(chain, from, timeout);
    }

    /// Pins all leading blocks that are resident: [#acquire(BlockChain, int, Duration)] from block 0 without
    /// waiting.
    default BlockTable acquire(BlockChain chain) {
        return acquire(chain, 0, NO_WAIT);
    }

    /// Reserves room for one block of the chain, or for the entry of a window or state that has its place behind
    /// it.
    ///
    /// A block is all [FULL][io.kvcache.core.identity.PartKind#FULL] parts of the namespace, one behind the other;
    /// an entry is all parts of one [io.kvcache.core.identity.PartGroup]. An entry goes when its block does, and
    /// may be missing anywhere: a match then ends where all that it needs is here.
    ///
    /// @param index block of the chain, `0 <= index < chain.length()`. For a block, the one before it must be
    ///     here or must be being written; for an entry, the block itself, and it must be one that an entry has its
    ///     place behind
    /// @param part number of a part of what is put, `0 <= part <` parts of the namespace
    /// @param timeout how long to wait for room while every block is pinned; an interrupt ends the wait
    /// @return a writer whose [BlockWriter#outcome()] says whether there is anything to write; close it in every
    ///     case
    BlockWriter put(BlockChain chain, int index, int part, Duration timeout);

    /// Stores a run of blocks by copying them, and stops at the first that is rejected. Where an earlier block of the
    /// run has gone meanwhile, it begins again from the front, once.
    ///
    /// @param from block of the chain that `blocks.get(0)` is
    /// @param blocks each of exactly the block's size, native or heap memory
    PutSummary putAll(BlockChain chain, int from, List<MemorySegment> blocks, Duration timeout);

    /// Copies a run of resident blocks and stops at the first that is not resident. Pins nothing afterwards.
    ///
    /// @param from block of the chain that is copied to `into.get(0)`
    /// @param into native or heap memory, each at least of the block's size; the content behind the copied blocks
    ///     is undefined
    /// @return the number of blocks copied
    /// @throws IndexOutOfBoundsException when a block does not fit its target
    default int getAll(BlockChain chain, int from, List<MemorySegment> into) {
        try (BlockTable table = acquire(chain.prefix(Math.min(chain.length(), from + into.size())), from, NO_WAIT)) {
            int blocks = table.readyBlocks();
            for (int i = 0; i < blocks; i++) {
                table.copyTo(from + i, into.get(i));
            }
            return table.isValid() ? blocks : 0;
        }
    }

    /// Copies the same bytes of a run of blocks, such as one layer of each, and stops at the first block
    /// that is not there in time. Pins nothing afterwards.
    ///
    /// A store with disks reads no more of a block that is on disk alone than what holds and proves the
    /// range, where that is [better][DiskBlock#isPart] than loading the block, and leaves the block
    /// there.
    ///
    /// @param from block of the chain whose range is copied to `into.get(0)`
    /// @param range of each block; see [io.kvcache.core.identity.BlockShape#layerSlice]
    /// @param into native or heap memory, each at least of the range's size; the content behind the
    ///     copied ranges is undefined
    /// @param timeout how long to wait for blocks in slower tiers; zero takes what is resident
    /// @return the number of blocks whose range was copied
    /// @throws IndexOutOfBoundsException when blocks have no such bytes, or the range does not fit a
    ///     target
    default int getRange(BlockChain chain, int from, ByteRange range, List<MemorySegment> into, Duration timeout) {
        RangeQuery query = new RangeQuery(chain, from, range, into);
        try (BlockTable table = acquire(query.chain(), from, timeout)) {
            int _ = table.await(table.endBlock(), timeout);
            return query.copyReady(table);
        }
    }

    /// Forgets block `from` of the chain and every block below it, in every tier.
    ///
    /// A pinned block is no longer found at once, and its memory is freed with its last pin.
    ///
    /// @return the number of blocks forgotten
    int drop(BlockChain chain, int from);

    /// Gives the cache a hint that only the caller has. A wrong one costs hits, never correctness.
    ///
    /// @return whether the hint was applied; a pin over its quota is not
    boolean hint(Hint hint);

    /// Releases the cache's memory once the open tables are closed or a bounded time has passed. A second close
    /// does nothing.
    ///
    /// @throws IllegalStateException in strict mode, when tables were still open
    @Override
    void close();
}
