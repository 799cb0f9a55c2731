package io.kvcache.core.tier;

import java.lang.foreign.MemorySegment;
import java.util.List;

/// A tier below host memory: it takes whole blocks out of host slots, keeps them, and brings them back.
///
/// It knows bytes and places; what lies where, what is worth keeping and what is still wanted is the store's
/// business, which it tells and asks by a [TierListener]. Nothing happens between ticks, so that a simulation
/// drives a tier step by step and a thread is put around it last.
///
/// **Opening.** A tier begins in state OPENING and gets to SERVING, or to REFUSED, by ticks. From
/// then on it reads and writes, and tells what it held before, newest first, until it is no longer
/// [#isRecovering()].
///
/// **Promises.** What is read is what was written, or the read fails. What was written before a [#flush] that was
/// answered with true is told by every later opening, unless it was reclaimed, replaced or buried since. What was
/// buried before such a flush does not come back.
///
/// **Ownership.** Memory that is handed over is the tier's from TAKEN until the outcome is told.
/// The caller that opened the tier closes it.
///
/// **Threads.** One, but for what says otherwise.
public interface Tier extends AutoCloseable {

    /// Returns the name in statistics and messages. Any thread.
    String name();

    /// Returns the current state. Any thread; it may be a tick behind.
    TierState state();

    /// Why it cannot do more; empty while it can do all. Any thread.
    String cause();

    /// The largest block or object that it takes, in bytes.
    long maxBlockBytes();

    /// Returns whether recovery will report more contents from before.
    boolean isRecovering();

    /// Writes a block or object; [TierListener#onWritten] tells where.
    ///
    /// @param pages native memory at addresses and in lengths of whole pages of 4 KiB, as many as the bytes take
    SubmitResult write(TierBlock block, List<MemorySegment> pages, long tag);

    /// Has what was written before under a key, or in a namespace, not count any longer after the next opening;
    /// [TierListener#onWritten] tells when that is written.
    SubmitResult tombstone(Tombstone burial, long tag);

    /// Reads a block or object; [TierListener#onRead] tells how that went.
    SubmitResult read(TierRead read);

    /// Makes durable what was taken by now; [TierListener#onFlushed] tells when.
    SubmitResult flush(long tag);

    /// Does what there is to do.
    ///
    /// @param nowNanos of a clock that never goes back
    /// @param waitNanos how long to wait while there is nothing to do but to wait
    /// @return how much was done
    int tick(long nowNanos, long waitNanos);

    /// Ends the wait of a tick. Any thread.
    void wake();

    /// Returns whether the tier has no operation queued or in flight.
    boolean isIdle();

    /// Takes nothing more; what is on its way ends by further ticks.
    void stop();

    /// Returns the counters. Any thread; they may be a tick behind.
    TierStats stats();

    /// Closes it after it failed, for it to be opened again: what is still in use of it, and
    /// what does not hinder that, is closed later.
    default void closeAfterFailure() {
        close();
    }

    @Override
    void close();
}
