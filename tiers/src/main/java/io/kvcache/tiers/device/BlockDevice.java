package io.kvcache.tiers.device;

import java.lang.foreign.MemorySegment;

/// A fixed number of bytes that keep what was written to them, read and written asynchronously in aligned
/// spans.
///
/// Operations are queued by [#read], [#write], [#sync] and [#discard], and handed to the device together by
/// [#submit]. They are reported to a [CompletionSink] by [#poll] or [#await], in any order. Each carries a tag, a
/// number of the caller's that comes back with its outcome. At most [#depth] operations are in flight at a time;
/// one more is answered by `false` and changes nothing. Nothing happens between the calls that the caller could
/// notice, so a simulation can drive a device tick by tick, and a thread is put around it last.
///
/// **Spans.** Offsets and lengths are multiples of [#ALIGNMENT], and so are the addresses of segments, which are
/// native memory. One span is at most [#MAX_SPAN_BYTES]. A span that was never written reads as zeroes. If two
/// operations in flight overlap and one of them writes, the outcome of both is undefined: the caller keeps them
/// apart.
///
/// **Durability.** A write that completed is seen by every later read. It survives a loss of power once a
/// [#sync] that was queued after its completion has completed as done; until then all, a part or none of it
/// may be lost.
///
/// **Ownership.** A segment that was handed over stays alive and untouched until its completion was delivered.
/// The caller that opened the device closes it.
///
/// **Threads.** One. The first thread to queue, submit, poll or await owns the device from then on, and closes it.
/// Before that any thread may register memory, and a device that was never used may be closed by any thread. The
/// owner is a platform thread, because the kernel knows the owner too. All threads may call [#size], [#depth],
/// [#describe], [#lossCause] and [#wake].
///
/// **Errors.** A failed operation gives an [IoOutcome], never an exception. Misuse throws.
/// [IllegalArgumentException] names the value and the range of a span that is misaligned, out of range or not
/// native memory. [IllegalStateException] is for a call on a closed device, by a thread that does not own it, or a
/// poll from within a sink.
public interface BlockDevice extends AutoCloseable {

    /// The unit of offsets, lengths and addresses: the alignment of O_DIRECT on disks of 512 and of 4,096 byte
    /// sectors.
    int ALIGNMENT = 4096;

    /// The longest span of one read or write: 1 GiB, half of what the kernel moves in one call.
    int MAX_SPAN_BYTES = 1 << 30;

    /// Largest depth: more than any disk makes use of, and small enough that the kernel's rings never limit it.
    int MAX_DEPTH = 1024;

    /// Returns the size in bytes, a multiple of [#ALIGNMENT].
    long size();

    /// Returns how many operations can be in flight at a time.
    int depth();

    /// Returns how many operations are in flight: queued, and not yet delivered.
    int inFlight();

    /// Queues reading from `offset` on until the target is full.
    ///
    /// @return false when [#depth] operations are in flight
    boolean read(MemorySegment target, long offset, long tag);

    /// Queues writing the whole source to `offset`.
    ///
    /// @return false when [#depth] operations are in flight
    boolean write(MemorySegment source, long offset, long tag);

    /// Queues a sync, which makes durable all writes and discards that were delivered before this call.
    ///
    /// @return false when [#depth] operations are in flight
    boolean sync(long tag);

    /// Queues a discard, which gives the span back to the layer below, as a hole in a file. When it is done, the
    /// span reads as zeroes until it is written again. That write may meet [IoOutcome.Kind#NO_SPACE]. Without
    /// support below, the outcome is [IoOutcome.Kind#UNSUPPORTED] and the bytes stay as they are.
    ///
    /// @param length bytes, at least [#ALIGNMENT], up to the end of the device
    /// @return false when [#depth] operations are in flight
    boolean discard(long offset, long length, long tag);

    /// Hands over all queued operations. [#poll] and [#await] do so too.
    void submit();

    /// Delivers completions, without waiting. The sink may queue further operations, but must not poll.
    ///
    /// @return how many completions were delivered, at most [#depth]
    int poll(CompletionSink sink);

    /// Like [#poll], but waits for the first completion while any operation is in flight.
    ///
    /// @param timeoutNanos the longest wait; 0 for none
    /// @return how many completions were delivered; 0 when the time was up, no operation is in flight, or another
    ///     thread called [#wake]
    int await(CompletionSink sink, long timeoutNanos);

    /// Ends the owner's current wait, or else its next one; several calls before that count as one. Never waits
    /// itself, and does nothing to a closed device.
    ///
    /// A thread that hands work to the owner first puts it where the owner looks after every [#await], then calls
    /// this. Either the owner sees the work before it waits, or it does not wait.
    void wake();

    /// Registers memory that many spans will lie in, which can spare the kernel work for each of them. All of the
    /// memory is touched, and stays in place until the device is closed. Spans elsewhere work as well.
    ///
    /// @param pool native memory at an aligned address, which outlives the device
    /// @throws IllegalStateException while operations are in flight
    void register(MemorySegment pool);

    /// Returns the I/O path, for logs and statistics: `io_uring, fixed buffers, O_DIRECT`.
    String describe();

    /// Returns why what is written would be gone once the device is closed, though every write and sync is done: its
    /// file was removed or cut. Empty while it is kept, and where that cannot be known. Takes some microseconds.
    String lossCause();

    /// Waits for operations in flight, whose completions are then not delivered, and closes the device.
    ///
    /// @throws IllegalStateException at the second close, or when operations do not end in time: the device
    ///     then stays open, and their segments must stay too
    @Override
    void close();

    /// Receives the outcome of operations.
    @FunctionalInterface
    interface CompletionSink {

        /// Called once for each operation that ended, by the thread that polls. From here on its segment is the
        /// caller's again. If it was a read that is not done, its bytes are undefined.
        ///
        /// @param tag the number that the caller gave when it queued the operation
        void completed(long tag, IoOutcome outcome);
    }

    /// Operations of a device.
    enum IoOperation {
        READ,
        WRITE,
        SYNC,
        DISCARD
    }
}
