package io.kvcache.tiers.device;

import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.Queue;
import org.jspecify.annotations.Nullable;

/// Requests carried out by copying, in the order they came.
final class MemoryIoBackend implements IoBackend {

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
