package io.kvcache.tiers.device;

import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/// What is the same in every [BlockDevice] of this package: who may call, which spans are lawful, how many
/// operations are on their way. An [Engine] carries them out.
final class EngineDevice implements BlockDevice {

    private final String name;
    private final Spans spans;
    private final RequestPool requests;
    private final Engine engine;
    private final Tenure tenure;
    private final Alarm alarm;
    private final Ending ending;

    /// How a device ends.
    ///
    /// @param limitNanos how long operations may take to end
    /// @param release called after the engine was closed
    record Ending(long limitNanos, Runnable release) {}

    /// @param name for messages
    EngineDevice(String name, Spans spans, Engine engine, Ending ending) {
        this.name = name;
        this.spans = spans;
        this.requests = engine.requests();
        this.engine = engine;
        this.tenure = new Tenure(name);
        this.alarm = new Alarm(engine);
        this.ending = ending;
    }

    @Override
    public long size() {
        return spans.size();
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
        spans.requireTarget(target, offset);
        Request request = take();
        return request != null && start(request.transfer(IoOperation.READ, target, offset, tag));
    }

    @Override
    public boolean write(MemorySegment source, long offset, long tag) {
        spans.requireSource(source, offset);
        Request request = take();
        return request != null && start(request.transfer(IoOperation.WRITE, source, offset, tag));
    }

    @Override
    public boolean sync(long tag) {
        Request request = take();
        return request != null && start(request.sync(tag));
    }

    @Override
    public boolean discard(long offset, long length, long tag) {
        spans.requireRange(offset, length);
        Request request = take();
        return request != null && start(request.discard(offset, length, tag));
    }

    @Override
    public void submit() {
        use();
        engine.submit();
    }

    @Override
    public int poll(CompletionSink sink) {
        return await(sink, 0);
    }

    @Override
    public int await(CompletionSink sink, long timeoutNanos) {
        use();
        long start = System.nanoTime();
        long left = timeoutNanos;
        boolean woken;
        int delivered;
        do {
            woken = gather(inFlight() > 0 ? left : 0);
            delivered = deliver(sink);
            left = timeoutNanos - (System.nanoTime() - start);
        } while (delivered == 0 && !woken && left > 0 && inFlight() > 0);
        return delivered;
    }

    /// @return whether the alarm has rung
    private boolean gather(long timeoutNanos) {
        if (timeoutNanos <= 0) {
            engine.gather(0);
            return false;
        }
        engine.gather(alarm.set() ? timeoutNanos : 0);
        return alarm.unset();
    }

    @Override
    public void wake() {
        alarm.ring();
    }

    @Override
    public void register(MemorySegment pool) {
        tenure.visit();
        Spans.requireNative(pool);
        if (inFlight() > 0) {
            throw new IllegalStateException("%s registers memory only when nothing is on its way, %d operations are"
                    .formatted(name, inFlight()));
        }
        engine.register(pool);
    }

    @Override
    public String describe() {
        return engine.describe();
    }

    @Override
    public void close() {
        tenure.requireClosable();
        awaitAll();
        tenure.end();
        alarm.remove();
        engine.close();
        ending.release().run();
    }

    private void awaitAll() {
        long start = System.nanoTime();
        long left = ending.limitNanos();
        while (inFlight() > 0 && left > 0) {
            engine.gather(left);
            deliver((_, _) -> {});
            left = ending.limitNanos() - (System.nanoTime() - start);
        }
        if (inFlight() > 0) {
            throw new IllegalStateException("%s stays open: %d operations have not ended after %d ms"
                    .formatted(name, inFlight(), ending.limitNanos() / 1_000_000));
        }
    }

    private @Nullable Request take() {
        use();
        return requests.take();
    }

    private boolean start(Request request) {
        engine.start(request);
        return true;
    }

    private void use() {
        if (tenure.use()) {
            engine.own();
        }
    }

    /// Bounded by the depth, since the sink may queue operations that end at once.
    private int deliver(CompletionSink sink) {
        int limit = inFlight();
        int delivered = 0;
        tenure.startDelivery();
        try {
            Request request;
            while (delivered < limit && (request = engine.next()) != null) {
                long tag = request.tag();
                IoOutcome outcome = request.outcome();
                requests.giveBack(request);
                delivered++;
                sink.completed(tag, outcome);
            }
        } finally {
            tenure.endDelivery();
        }
        return delivered;
    }
}
