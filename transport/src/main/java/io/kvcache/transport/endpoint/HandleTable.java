package io.kvcache.transport.endpoint;

import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Consumer;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/// What one session holds of one kind, by number. Once it is barred nothing new gets in: a claim that
/// comes too late is given back by whoever brings it.
///
/// **Threads.** Any.
final class HandleTable<T> {

    /// Grants nothing.
    static final long NONE = 0;

    private final Map<Long, T> handles = new ConcurrentHashMap<>();
    private final AtomicLong lastNumber = new AtomicLong();
    private final EndpointStats.Counters.HandleCounters counters;
    private volatile boolean closed;

    HandleTable(EndpointStats.Counters.HandleCounters counters) {
        this.counters = counters;
    }

    /// Takes a claim in; answers its number, or [#NONE] when the session is over.
    long grant(T resource) {
        long number = lastNumber.incrementAndGet();
        counters.granted.increment();
        handles.put(number, resource);
        if (closed && handles.remove(number) != null) {
            counters.expired.increment();
            return NONE;
        }
        return number;
    }

    /// The claim with this number.
    @Nullable
    T find(long number) {
        return handles.get(number);
    }

    /// Takes a claim out, for good, as its client wants it: only one caller gets it.
    @Nullable
    T remove(long number) {
        return remove(number, counters.ended);
    }

    /// Takes a claim out whose client cannot give it back.
    @Nullable
    T expire(long number) {
        return remove(number, counters.expired);
    }

    private @Nullable T remove(long number, LongAdder counter) {
        T taken = handles.remove(number);
        if (taken != null) {
            counter.increment();
        }
        return taken;
    }

    boolean anyMatch(Predicate<T> condition) {
        return handles.values().stream().anyMatch(condition);
    }

    int size() {
        return handles.size();
    }

    /// Lets nothing in any more, and hands out what is there.
    void expire(Consumer<T> back) {
        closed = true;
        for (Long number : List.copyOf(handles.keySet())) {
            T taken = expire(number);
            if (taken != null) {
                back.accept(taken);
            }
        }
    }
}
