package io.kvcache.tiers.device;

import io.kvcache.tiers.device.IoRequest.IoRequestPool;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/// A way to carry out requests.
///
/// **Threads.** All calls come from the owner of the device, except [#register], [#describe] and [#close],
/// which may come from another one before there is an owner or after it has ended, and [#wake].
interface IoBackend {

    /// All the requests there are, those on their way among them.
    IoRequestPool requests();

    /// The calling thread is the owner from here on. Called once, before any request.
    void attachOwner();

    /// Queues a request; there is room for as many as the device is deep.
    void enqueue(IoRequest request);

    /// Hands over what is queued, as far as the kernel takes it.
    void submit();

    /// Submits, brings in completions, and waits for one if there is none yet. It may return too early.
    ///
    /// @param timeoutNanos the longest wait; 0 or less not to wait
    void awaitCompletions(long timeoutNanos);

    /// Ends the wait of [#awaitCompletions], or the next one; called by any thread while the owner is in it or
    /// about to be, and not once the engine is being closed.
    void wake();

    /// The next request that has ended among those gathered, or null.
    @Nullable
    IoRequest pollCompleted();

    void register(MemorySegment pool);

    String describe();

    /// Called when no request is on its way.
    void close();
}
