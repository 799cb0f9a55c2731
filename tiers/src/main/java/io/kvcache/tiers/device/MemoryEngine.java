package io.kvcache.tiers.device;

import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.Queue;
import org.jspecify.annotations.Nullable;

/// Requests carried out by copying, in the order they came.
final class MemoryEngine implements Engine {

    private final MemorySegment storage;
    private final RequestPool requests;
    private final Queue<Request> queued = new ArrayDeque<>();
    private final Queue<Request> ended = new ArrayDeque<>();

    MemoryEngine(MemorySegment storage, RequestPool requests) {
        this.storage = storage;
        this.requests = requests;
    }

    @Override
    public RequestPool requests() {
        return requests;
    }

    @Override
    public void own() {}

    @Override
    public void start(Request request) {
        queued.add(request);
    }

    @Override
    public void submit() {}

    @Override
    public void gather(long timeoutNanos) {
        Request request;
        while ((request = queued.poll()) != null) {
            carryOut(request);
            boolean over = request.endsWith(request.remaining());
            assert over : "a copy moves all bytes";
            ended.add(request);
        }
    }

    @Override
    public void wake() {}

    private void carryOut(Request request) {
        switch (request.operation()) {
            case READ -> request.segment().copyFrom(span(request));
            case WRITE -> span(request).copyFrom(request.segment());
            case DISCARD -> span(request).fill((byte) 0);
            case SYNC -> {}
        }
    }

    private MemorySegment span(Request request) {
        return storage.asSlice(request.offset(), request.remaining());
    }

    @Override
    public @Nullable Request next() {
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
