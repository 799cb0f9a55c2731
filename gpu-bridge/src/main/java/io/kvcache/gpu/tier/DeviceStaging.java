package io.kvcache.gpu.tier;

import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.tier.TierBlock;
import io.kvcache.gpu.driver.DeviceSpan;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// The part of a tier's memory into which an engine's pages are gathered when it stores blocks. Of those that the
/// store then keeps on the device, the tier takes the bytes from here, and nothing crosses the bus. The others are
/// overwritten, the oldest first; one that is chosen later comes from host memory.
///
/// What lies here counts only with the checksum that its block was sealed with: the key may have been dropped and
/// put again with other bytes.
///
/// **Threads.** Any.
public final class DeviceStaging {

    private final DeviceSpan allocation;
    private final DeviceSpan memory;
    /// In the order in which they were taken, which is that of their places, around the end.
    private final Deque<StagedBlock> blocks = new ArrayDeque<>();

    private final Map<BlockKey, StagedBlock> sealed = new HashMap<>();
    private boolean closed;

    /// @param allocation the tier's memory
    /// @param bytes of it for this, from the first on
    DeviceStaging(DeviceSpan allocation, long bytes) {
        this.allocation = allocation;
        memory = allocation.slice(0, bytes);
    }

    /// Returns the tier's memory, which this is a part of, for a driver that has to adopt it.
    public DeviceSpan allocation() {
        return allocation;
    }

    /// Room for one block.
    ///
    /// **Ownership.** The caller [seals][#seal] or closes it, once the device has done with what writes there.
    public final class StagedBlock implements AutoCloseable {

        private final long offset;
        private final long bytes;
        private @Nullable BlockKey key;
        private int checksum;
        private boolean held = true;

        private StagedBlock(long offset, long bytes) {
            this.offset = offset;
            this.bytes = bytes;
        }

        /// Returns the room, of the block's size.
        public DeviceSpan span() {
            return memory.slice(offset, bytes);
        }

        /// The block's bytes are there, and its room in host memory is about to be sealed.
        ///
        /// @param sum that it is sealed with
        public void seal(BlockKey of, int sum) {
            synchronized (DeviceStaging.this) {
                key = of;
                checksum = sum;
                held = false;
                if (!closed) {
                    sealed.put(of, this);
                }
            }
        }

        /// Gives the room back, and forgets what is there.
        @Override
        public void close() {
            synchronized (DeviceStaging.this) {
                held = false;
                forget();
            }
        }

        private void forget() {
            if (key != null) {
                sealed.remove(key, this);
                key = null;
            }
        }

        /// The tier has not taken the bytes, and may be asked to again.
        void returnClaim() {
            synchronized (DeviceStaging.this) {
                held = false;
            }
        }
    }

    /// Takes room for a block.
    ///
    /// @return null where it is larger than all of this, or too many are held
    public synchronized @Nullable StagedBlock take(long bytes) {
        long pages = DeviceGeometry.pages(bytes);
        if (closed || pages > memory.bytes()) {
            return null;
        }
        long offset = offsetFor(pages);
        for (StagedBlock oldest = blocks.peek(); offset < 0 && oldest != null && !oldest.held; oldest = blocks.peek()) {
            blocks.remove().forget();
            offset = offsetFor(pages);
        }
        if (offset < 0) {
            return null;
        }
        StagedBlock taken = new StagedBlock(offset, bytes);
        blocks.add(taken);
        return taken;
    }

    /// Returns where room for the next block begins, or -1.
    private long offsetFor(long pages) {
        if (blocks.isEmpty()) {
            return pages <= memory.bytes() ? 0 : -1;
        }
        long first = blocks.getFirst().offset;
        long end = blocks.getLast().offset + DeviceGeometry.pages(blocks.getLast().bytes);
        if (end > first && end + pages <= memory.bytes()) {
            return end;
        }
        long from = end > first ? 0 : end;
        return from + pages <= first ? from : -1;
    }

    /// Returns a block that lies here with just these bytes, for the tier to copy and then to close; or null.
    synchronized @Nullable StagedBlock claim(TierBlock block) {
        StagedBlock found = sealed.get(new BlockKey(block.keyHi(), block.keyLo()));
        if (found == null || found.held || found.checksum != block.checksum() || found.bytes != block.bytes()) {
            return null;
        }
        found.held = true;
        return found;
    }

    /// Returns whether the device may be writing here for an engine, or reading for the tier.
    synchronized boolean isInUse() {
        return blocks.stream().anyMatch(block -> block.held);
    }

    /// Nothing is taken or found from here on.
    synchronized void close() {
        closed = true;
        sealed.clear();
    }
}
