package io.kvcache.tiers.device;

import io.kvcache.tiers.device.BlockDevice.CompletionSink;
import io.kvcache.tiers.device.BlockDevice.IoOperation;
import io.kvcache.tiers.device.IoRequest.IoRequestPool;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// Common part of every [BlockDevice] of this package: checks of the calling thread and of spans, and the count of
/// operations in flight. An [IoBackend] carries them out.
final class AsyncDevice implements BlockDevice {

    private final String name;
    private final SpanValidator spanValidator;
    private final IoRequestPool requests;
    private final IoBackend ioBackend;
    private final OwnerCheck ownerCheck;
    private final Wakeup wakeup;
    private final CloseOptions closeOptions;
    private final Supplier<String> lossCause;

    /// How a device ends.
    ///
    /// @param timeoutNanos how long operations may take to end
    /// @param release called after the engine was closed
    record CloseOptions(long timeoutNanos, Runnable release) {}

    /// A device that keeps what is written.
    ///
    /// @param name for messages
    AsyncDevice(String name, SpanValidator spanValidator, IoBackend ioBackend, CloseOptions closeOptions) {
        this(name, spanValidator, ioBackend, closeOptions, () -> "");
    }

    /// @param name for messages
    /// @param lossCause see [BlockDevice#lossCause]
    AsyncDevice(
            String name,
            SpanValidator spanValidator,
            IoBackend ioBackend,
            CloseOptions closeOptions,
            Supplier<String> lossCause) {
        this.name = name;
        this.spanValidator = spanValidator;
        this.requests = ioBackend.requests();
        this.ioBackend = ioBackend;
        this.ownerCheck = new OwnerCheck(name);
        this.wakeup = new Wakeup(ioBackend);
        this.closeOptions = closeOptions;
        this.lossCause = lossCause;
    }

    @Override
    public long size() {
        return spanValidator.size();
    }

    @Override
    public int depth() {
        return requests.depth();
    }

    @Override
    public int inFlight() {
        return requests.inFlight();
    }

    @Override
    public boolean read(MemorySegment target, long offset, long tag) {
        spanValidator.requireTarget(target, offset);
        IoRequest request = acquireRequest();
        return request != null && start(request.prepareTransfer(IoOperation.READ, target, offset, tag));
    }

    @Override
    public boolean write(MemorySegment source, long offset, long tag) {
        spanValidator.requireSource(source, offset);
        IoRequest request = acquireRequest();
        return request != null && start(request.prepareTransfer(IoOperation.WRITE, source, offset, tag));
    }

    @Override
    public boolean sync(long tag) {
        IoRequest request = acquireRequest();
        return request != null && start(request.prepareSync(tag));
    }

    @Override
    public boolean discard(long offset, long length, long tag) {
        spanValidator.requireRange(offset, length);
        IoRequest request = acquireRequest();
        return request != null && start(request.prepareDiscard(offset, length, tag));
    }

    @Override
    public void submit() {
        requireOwner();
        ioBackend.submit();
    }

    @Override
    public int poll(CompletionSink sink) {
        return await(sink, 0);
    }

    @Override
    public int await(CompletionSink sink, long timeoutNanos) {
        requireOwner();
        long start = System.nanoTime();
        long left = timeoutNanos;
        boolean woken;
        int delivered;
        do {
            woken = awaitCompletions(inFlight() > 0 ? left : 0);
            delivered = deliver(sink);
            left = timeoutNanos - (System.nanoTime() - start);
        } while (delivered == 0 && !woken && left > 0 && inFlight() > 0);
        return delivered;
    }

    /// @return whether the alarm has rung
    private boolean awaitCompletions(long timeoutNanos) {
        if (timeoutNanos <= 0) {
            ioBackend.awaitCompletions(0);
            return false;
        }
        ioBackend.awaitCompletions(wakeup.arm() ? timeoutNanos : 0);
        return wakeup.disarm();
    }

    @Override
    public void wake() {
        wakeup.signal();
    }

    @Override
    public void register(MemorySegment pool) {
        ownerCheck.requireNotForeign();
        SpanValidator.requireNative(pool);
        if (inFlight() > 0) {
            throw new IllegalStateException("%s registers memory only when nothing is on its way, %s operations are"
                    .formatted(name, inFlight()));
        }
        ioBackend.register(pool);
    }

    @Override
    public String describe() {
        return ioBackend.describe();
    }

    @Override
    public String lossCause() {
        return lossCause.get();
    }

    @Override
    public void close() {
        ownerCheck.requireClosable();
        awaitAll();
        ownerCheck.markClosed();
        wakeup.disable();
        ioBackend.close();
        closeOptions.release().run();
    }

    private void awaitAll() {
        long start = System.nanoTime();
        long left = closeOptions.timeoutNanos();
        while (inFlight() > 0 && left > 0) {
            ioBackend.awaitCompletions(left);
            deliver((_, _) -> {});
            left = closeOptions.timeoutNanos() - (System.nanoTime() - start);
        }
        if (inFlight() > 0) {
            throw new IllegalStateException("%s stays open: %s operations have not ended after %s ms"
                    .formatted(name, inFlight(), closeOptions.timeoutNanos() / 1_000_000));
        }
    }

    private @Nullable IoRequest acquireRequest() {
        requireOwner();
        return requests.acquire();
    }

    private boolean start(IoRequest request) {
        ioBackend.enqueue(request);
        return true;
    }

    private void requireOwner() {
        if (ownerCheck.claimOrRequireOwner()) {
            ioBackend.attachOwner();
        }
    }

    /// Bounded by the depth, since the sink may queue operations that end at once.
    private int deliver(CompletionSink sink) {
        int limit = inFlight();
        int delivered = 0;
        ownerCheck.startDelivery();
        try {
            IoRequest request;
            while (delivered < limit && (request = ioBackend.pollCompleted()) != null) {
                long tag = request.tag();
                IoOutcome outcome = request.outcome();
                requests.release(request);
                delivered++;
                sink.completed(tag, outcome);
            }
        } finally {
            ownerCheck.endDelivery();
        }
        return delivered;
    }

    /// Ends the waits of a device's owner from other threads, at no cost when it is awake.
    ///
    /// **Threads.** [#signal] any; the rest the owner.
    private static final class Wakeup {

        // The owner sets the alarm before it waits and takes it back afterwards; both are one exchange, and so is
        // the ringing. One that comes before the setting makes the setting fail, so that the owner does not wait;
        // one that comes after it calls the engine. Ringing holds the lock for as long as it uses the engine, so
        // that the engine's descriptors are not closed and reused under it.

        private enum State {
            IDLE,
            ARMED,
            RUNG
        }

        private final IoBackend ioBackend;
        private final AtomicReference<State> state = new AtomicReference<>(State.IDLE);
        private boolean disabled;

        Wakeup(IoBackend ioBackend) {
            this.ioBackend = ioBackend;
        }

        /// The owner is about to wait.
        ///
        /// @return false when it has rung already, and the owner may not wait
        boolean arm() {
            return state.compareAndSet(State.IDLE, State.ARMED);
        }

        /// The owner waits no longer.
        ///
        /// @return whether it has rung
        boolean disarm() {
            return state.getAndSet(State.IDLE) == State.RUNG;
        }

        /// Ends the wait that the owner is in, or the next one.
        synchronized void signal() {
            if (!disabled && state.getAndSet(State.RUNG) == State.ARMED) {
                ioBackend.wake();
            }
        }

        /// From here on ringing does nothing, and none is under way.
        synchronized void disable() {
            disabled = true;
        }
    }
}
