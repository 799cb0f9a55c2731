package io.kvcache.transport.shm;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.memory.Pages;
import io.kvcache.core.shm.SharedMemory.SharedMemoryFiles;
import io.kvcache.core.tree.IndexHeader;
import io.kvcache.core.tree.IndexHeader.IndexReader;
import io.kvcache.core.tree.RecordHandle;
import io.kvcache.transport.shm.ServerMemoryFolder.SharedMapping;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.IntToLongFunction;
import org.jspecify.annotations.Nullable;

/// A store of another process, read through its shared memory: it looks up and copies blocks without a message
/// to that process.
///
/// **A copy without a lease** may race with an eviction. So it reads the generation of the record again after
/// the copy, with a load-load fence between. If the generation has changed, it discards the copy, and the block
/// is a miss. A server that dies cannot unmap the memory: it stays as it was at that moment.
///
/// **Ownership.** The caller that opens it releases it. Callers use all methods but [#retain] and [#release] only
/// between these two, and the last release unmaps. So no caller reads unmapped memory.
///
/// **Threads.** Any.
public final class SharedStore {

    /// Stands for the namespace's number if no server has told it.
    public static final int ANY_NAMESPACE = -1;

    private final SharedMemoryFiles files;
    private final SharedMapping mapping;
    private final IndexReader index;
    private final MemorySegment slots;
    private final OneSidedCounters counters;

    private SharedStore(
            SharedMemoryFiles files,
            SharedMapping mapping,
            IndexReader index,
            MemorySegment slots,
            OneSidedCounters counters) {
        this.files = files;
        this.mapping = mapping;
        this.index = index;
        this.slots = slots;
        this.counters = counters;
    }

    /// Maps the files of a store.
    ///
    /// @param counters of the copies
    /// @throws IOException when the files do not exist, are not this user's, or are not those that the server
    ///     described, for example since it runs on another host
    public static SharedStore open(SharedMemoryFiles files, OneSidedCounters counters) throws IOException {
        ServerMemoryFolder folder = new ServerMemoryFolder(files);
        SharedMapping mapping = new SharedMapping();
        Arena arena = mapping.arena();
        try {
            IndexHeader header = IndexHeader.read(folder.map(files.records(), IndexHeader.BYTES, arena));
            if (header.epoch() != files.epoch()) {
                throw new IOException(String.format(
                        Locale.ROOT,
                        "%s has epoch %016x; allowed: %016x, as the server says",
                        files,
                        header.epoch(),
                        files.epoch()));
            }
            MemorySegment records = folder.map(files.records(), header.readerBytes(), arena);
            MemorySegment slots = folder.map(files.slots(), header.slotBytes(), arena);
            return new SharedStore(files, mapping, new IndexReader(header, records), slots, counters);
        } catch (IllegalArgumentException unknown) {
            mapping.release();
            throw new IOException(files + ": " + unknown.getMessage(), unknown);
        } catch (IOException | RuntimeException failed) {
            mapping.release();
            throw failed;
        }
    }

    /// Returns the mapped files.
    public SharedMemoryFiles files() {
        return files;
    }

    /// Keeps the files mapped until [#release].
    ///
    /// @return false when they are unmapped already, or the store has stopped serving
    public boolean retain() {
        boolean mapped = mapping.retain();
        if (mapped && !index.isServing()) {
            mapping.release();
            return false;
        }
        return mapped;
    }

    /// Ends a use. The last release unmaps the files.
    public void release() {
        mapping.release();
    }

    /// Returns whether blocks may be on a device of the server's, which the records do not tell.
    public boolean hasDevice() {
        return index.header().hasDevice();
    }

    /// A chain, and the number of its namespace in the records, or [#ANY_NAMESPACE] if that is unknown. A lookup
    /// checks the number, as a caller that uses raw keys can name another namespace's block.
    public record ChainQuery(BlockChain chain, int namespace) {}

    /// Returns how many leading blocks of a chain are in host memory, of the first `limit`.
    ///
    /// @return -1 when records changed too often during the lookup
    public int countResident(ChainQuery chainQuery, int limit) {
        return PrefixSearch.length(0, limit, block -> find(chainQuery, block));
    }

    private long find(ChainQuery chainQuery, int block) {
        return missUnlessMatching(
                chainQuery, block, index.find(chainQuery.chain.keyHi(block), chainQuery.chain.keyLo(block)));
    }

    /// Turns a block of another namespace, or at another depth of a chain, into a miss.
    private long missUnlessMatching(ChainQuery chainQuery, int block, long handle) {
        boolean another = RecordHandle.isFound(handle)
                && ((chainQuery.namespace != ANY_NAMESPACE && index.namespace(handle) != chainQuery.namespace)
                        || index.depth(handle) != block);
        return another ? RecordHandle.MISS : handle;
    }

    /// Returns how many leading blocks of a chain are in host memory or on disk.
    ///
    /// @param resident leading blocks that the caller has found already
    /// @return -1 when records changed too often during the lookup
    public int countKnown(ChainQuery chainQuery, int resident) {
        BlockChain chain = chainQuery.chain;
        return PrefixSearch.length(
                resident,
                chain.length(),
                block ->
                        missUnlessMatching(chainQuery, block, index.findKnown(chain.keyHi(block), chain.keyLo(block))));
    }

    /// Copies leading blocks in host memory, from block `from` on. Stops at the first block that is not there, or
    /// that was evicted during its copy.
    ///
    /// @param blockBytes bytes of each block
    /// @param into targets of at least that size
    /// @return the copied blocks, and the handle of the last; -1 blocks when records changed too often during the
    ///     lookup
    public CopyResult copy(ChainQuery chainQuery, int from, long blockBytes, List<MemorySegment> into) {
        int limit = (int) Math.min(chainQuery.chain.length(), (long) from + into.size());
        int here = countResident(chainQuery, limit);
        if (here < 0 || !isAtSameDepth(chainQuery, here)) {
            counters.missed.add(limit - from);
            return here < 0 ? CopyResult.INCONCLUSIVE : CopyResult.EMPTY;
        }
        int copied = 0;
        long last = RecordHandle.MISS;
        for (boolean whole = true; whole && from + copied < here; ) {
            long handle = find(chainQuery, from + copied);
            whole = RecordHandle.isFound(handle) && copy(handle, blockBytes, into.get(copied));
            if (whole) {
                last = handle;
                copied++;
            }
        }
        counters.copied.add(copied);
        counters.missed.add(limit - from - copied);
        return copied == 0 ? CopyResult.EMPTY : new CopyResult(copied, last);
    }

    /// Returns whether the last of the blocks lies as deep in the store as in the caller's chain. A chain of
    /// engine keys may begin in the middle of another: the store has its keys, but below blocks of the other
    /// chain.
    private boolean isAtSameDepth(ChainQuery chainQuery, int blocks) {
        if (blocks == 0) {
            return true;
        }
        long handle = find(chainQuery, blocks - 1);
        return RecordHandle.isFound(handle) && index.depth(handle) == blocks - 1 && index.isUnchanged(handle);
    }

    private boolean copy(long handle, long bytes, MemorySegment target) {
        int page = index.page(handle, bytes);
        if (!inSlots(page, bytes)) {
            return false;
        }
        MemorySegment.copy(slots, Pages.offset(page), target, 0, bytes);
        boolean whole = index.isUnchanged(handle);
        if (!whole) {
            counters.torn.increment();
        }
        return whole;
    }

    /// Where a block lies that the server keeps for us.
    ///
    /// @param handle that the server has told
    /// @return for [#slot], or -1 when the record does not hold it, or holds another size
    public int page(long handle, long bytes) {
        int page = index.page(handle, bytes);
        return inSlots(page, bytes) ? page : -1;
    }

    /// The bytes at a page that [#page] answered, read-only.
    public MemorySegment slot(int page, long bytes) {
        return slots.asSlice(Pages.offset(page), bytes);
    }

    private boolean inSlots(int page, long bytes) {
        return page >= 0 && Pages.offset(page) <= slots.byteSize() - bytes;
    }

    /// A span of the slots that the server keeps where it is for us, read-only; null when there is none
    /// such.
    public @Nullable MemorySegment span(long offset, long bytes) {
        boolean inSlots = offset >= 0 && bytes >= 0 && offset <= slots.byteSize() - bytes;
        return inSlots ? slots.asSlice(offset, bytes) : null;
    }

    /// The checksum of a block that the server keeps for us.
    public int checksum(long handle) {
        return index.checksum(handle);
    }

    /// Returns whether a handle from the server names a record that can exist.
    public boolean isValidHandle(long handle) {
        return RecordHandle.isFound(handle)
                && RecordHandle.record(handle) < index.header().records();
    }

    /// Returns whether a record is unchanged, so that the bytes read from its slots until now are valid.
    public boolean isCurrent(long handle) {
        return index.isUnchanged(handle);
    }

    /// Result of a copy without a message.
    ///
    /// @param blocks copied, or -1 when the look-up could not tell
    /// @param lastHandle handle of the last block that was copied; a miss when there is none
    public record CopyResult(int blocks, long lastHandle) {

        static final CopyResult EMPTY = new CopyResult(0, RecordHandle.MISS);
        static final CopyResult INCONCLUSIVE = new CopyResult(-1, RecordHandle.MISS);
    }

    /// How far a chain is known. What is known of one is a prefix of it, so this is a binary search; first and
    /// last block are asked before anything else, as most prompts are either new or here as a whole.
    static final class PrefixSearch {

        private static final int INCONCLUSIVE = -1;

        private PrefixSearch() {}

        /// Searches.
        ///
        /// @param known blocks that are known to be there
        /// @param limit blocks looked at
        /// @param find answers a [RecordHandle] of a block
        /// @return blocks that are there, or -1 when a look-up could not tell
        static int length(int known, int limit, IntToLongFunction find) {
            int there = known;
            int unknown = limit;
            int next = there;
            while (there < unknown) {
                long handle = find.applyAsLong(next);
                if (handle == RecordHandle.UNSURE) {
                    return INCONCLUSIVE;
                }
                boolean first = there == known && unknown == limit;
                if (RecordHandle.isFound(handle)) {
                    there = next + 1;
                    next = first ? unknown - 1 : (there + unknown) >>> 1;
                } else {
                    unknown = next;
                    next = (there + unknown) >>> 1;
                }
            }
            return there;
        }
    }

    /// Counts what was read without a message. Any thread.
    public static final class OneSidedCounters {

        final LongAdder copied = new LongAdder();
        final LongAdder missed = new LongAdder();
        final LongAdder torn = new LongAdder();
        private final LongAdder reported = new LongAdder();

        /// Blocks copied whole.
        public long copied() {
            return copied.sum();
        }

        /// Blocks asked for that were not copied, for whatever reason.
        public long missed() {
            return missed.sum();
        }

        /// Copies thrown away, as their block went while it was copied; each is a miss too.
        public long torn() {
            return torn.sum();
        }

        /// Reads that were reported to the server, for its policy.
        public long reported() {
            return reported.sum();
        }

        /// The given number of reads was reported to the server.
        public void addReported(long reads) {
            reported.add(reads);
        }
    }
}
