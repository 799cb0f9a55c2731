package io.kvcache.tiers.device;

import io.kvcache.tiers.device.IoRequest.IoRequestPool;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.Queue;
import org.jspecify.annotations.Nullable;

/// Makes [BlockDevice]s in memory, which carry out operations in the order they were queued, and only when
/// polled, so that the same calls always have the same effect. They never wait and never fail.
///
/// **Ownership.** The memory is the caller's and outlives the device; the next device over it reads what this
/// one wrote. For the rest, as [BlockDevice].
public final class MemoryDevice {

    private MemoryDevice() {}

    /// A device that holds its bytes in `storage`.
    ///
    /// @param storage a multiple of [BlockDevice#ALIGNMENT] bytes, on the heap or off it, zeroes where never
    ///     written
    /// @param depth operations on their way at a time, 1 to [BlockDevice#MAX_DEPTH]
    public static BlockDevice create(MemorySegment storage, int depth) {
        SpanValidator spanValidator = new SpanValidator(storage.byteSize());
        IoBackend ioBackend = new MemoryIoBackend(storage, new IoRequestPool(depth));
        return new AsyncDevice("memory device", spanValidator, ioBackend, new AsyncDevice.CloseOptions(1, () -> {}));
    }

    /// Requests carried out by copying, in the order they came.
    private static final class MemoryIoBackend implements IoBackend {

        private final MemorySegment storage;
        private final IoRequestPool requests;
        private final Queue<IoRequest> queued = new ArrayDeque<>();
        private final Queue<IoRequest> ended = new ArrayDeque<>();

        MemoryIoBackend(MemorySegment storage, IoRequestPool requests) {
            this.storage = storage;
            this.requests = requests;
        }

        @Override
        public IoRequestPool requests() {
            return requests;
        }

        @Override
        public void attachOwner() {}

        @Override
        public void enqueue(IoRequest request) {
            queued.add(request);
        }

        @Override
        public void submit() {}

        @Override
        public void awaitCompletions(long timeoutNanos) {
            IoRequest request;
            while ((request = queued.poll()) != null) {
                execute(request);
                boolean over = request.completeWith(request.remaining());
                assert over : "a copy moves all bytes";
                ended.add(request);
            }
        }

        @Override
        public void wake() {}

        private void execute(IoRequest request) {
            switch (request.operation()) {
                case READ -> request.segment().copyFrom(span(request));
                case WRITE -> span(request).copyFrom(request.segment());
                case DISCARD -> span(request).fill((byte) 0);
                case SYNC -> {}
            }
        }

        private MemorySegment span(IoRequest request) {
            return storage.asSlice(request.offset(), request.remaining());
        }

        @Override
        public @Nullable IoRequest pollCompleted() {
            return ended.poll();
        }

        @Override
        public void register(MemorySegment pool) {}

        @Override
        public String describe() {
            return "memory";
        }

        @Override
        public void close() {}
    }
}
