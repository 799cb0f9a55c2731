package io.kvcache.core.tier;

import java.lang.foreign.MemorySegment;
import java.util.List;

/// A tier below host memory: it takes whole blocks out of host slots, keeps them, and brings them back.
///
/// A tier knows bytes and addresses. The store decides which blocks lie where, which are worth keeping and which
/// are still wanted; the tier reports and asks through a [TierListener]. Nothing happens between ticks, so a
/// simulation drives a tier step by step, and a thread is put around it last.
///
/// **Opening.** A tier begins in state OPENING and gets to SERVING, or to REFUSED, by ticks. From then on it reads
/// and writes. It also reports its earlier contents, newest first, until it is no longer [#isRecovering()].
///
/// **Promises.** A read returns the bytes that were written, or fails. A block written before a [#flush] that was
/// answered with true is reported by every later opening, unless it was reclaimed, replaced or deleted by a
/// tombstone since. A block deleted before that flush does not come back.
///
/// **Ownership.** Memory that is handed over is the tier's from ACCEPTED until the outcome is reported. The caller
/// that opened the tier closes it.
///
/// **Threads.** One, unless a method says otherwise.
public interface Tier extends AutoCloseable {

    /// Returns the name in statistics and messages. Any thread.
    String name();

    /// Returns the current state. Any thread; it may be a tick behind.
    TierState state();

    /// Returns why the tier cannot do more; empty while it can do all. Any thread.
    String cause();

    /// Returns the size of the largest block or object that it takes, in bytes.
    long maxBlockBytes();

    /// Returns whether recovery will report more contents from before.
    boolean isRecovering();

    /// Writes a block or object; [TierListener#onWritten] reports its address.
    ///
    /// @param pages native memory at addresses and in lengths of whole pages of 4 KiB, as many as the bytes take
    SubmitResult write(TierBlock block, List<MemorySegment> pages, long tag);

    /// Deletes earlier copies of a key, or of a namespace, with effect from the next opening.
    /// [TierListener#onWritten] reports when the tombstone is written.
    SubmitResult tombstone(Tombstone tombstone, long tag);

    /// Reads a block or object; [TierListener#onRead] reports the outcome.
    SubmitResult read(TierRead read);

    /// Makes durable all that was accepted by now; [TierListener#onFlushed] reports when.
    SubmitResult flush(long tag);

    /// Advances all work that can go on now.
    ///
    /// @param nowNanos of a clock that never goes back
    /// @param waitNanos longest wait while there is nothing to do
    /// @return the amount of work done, 0 for none
    int tick(long nowNanos, long waitNanos);

    /// Ends the wait of a tick. Any thread.
    void wake();

    /// Returns whether the tier has no operation queued or in flight.
    boolean isIdle();

    /// Accepts nothing more; operations in flight end by further ticks.
    void stop();

    /// Returns the counters. Any thread; they may be a tick behind.
    TierStats stats();

    /// Closes it after it failed, so that it can be opened again.
    default void closeAfterFailure() {
        close();
    }

    @Override
    void close();

    /// A tier that reads parts of what it holds, of which it proves each alone.
    public interface RangeTier {

        /// Some bytes of a block or object.
        ///
        /// @param block what it is, with the checksum of all its bytes
        /// @param address where it lies
        /// @param from its first byte that is wanted
        /// @param target as long as what is wanted, at least one byte; on the heap or off it. Native memory in
        ///     whole pages is read into without a copy where the bytes begin a page, of a coded block a chunk,
        ///     and end one or the block
        /// @param tag comes back with the outcome
        record TierRange(TierBlock block, long address, int from, MemorySegment target, long tag) {}

        /// Reads some bytes of a block or object; [TierListener#onRead] reports the outcome.
        ///
        /// @return REJECTED also for what has to be read whole
        SubmitResult readRange(TierRange range);
    }
}
