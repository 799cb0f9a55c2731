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
final class Claims<T> {

    /// Grants nothing.
    static final long NONE = 0;

    private final Map<Long, T> held = new ConcurrentHashMap<>();
    private final AtomicLong last = new AtomicLong();
    private final Counters.ClaimCounters counters;
    private volatile boolean barred;

    Claims(Counters.ClaimCounters counters) {
        this.counters = counters;
    }

    /// Takes a claim in; answers its number, or [#NONE] when the session is over.
    long grant(T claim) {
        long number = last.incrementAndGet();
        counters.granted.increment();
        held.put(number, claim);
        if (barred && held.remove(number) != null) {
            counters.expired.increment();
            return NONE;
        }
        return number;
    }

    /// The claim with this number.
    @Nullable
    T find(long number) {
        return held.get(number);
    }

    /// Takes a claim out, for good, as its client wants it: only one caller gets it.
    @Nullable
    T take(long number) {
        return take(number, counters.ended);
    }

    /// Takes a claim out whose client cannot give it back.
    @Nullable
    T expire(long number) {
        return take(number, counters.expired);
    }

    private @Nullable T take(long number, LongAdder counter) {
        T taken = held.remove(number);
        if (taken != null) {
            counter.increment();
        }
        return taken;
    }

    boolean any(Predicate<T> condition) {
        return held.values().stream().anyMatch(condition);
    }

    int size() {
        return held.size();
    }

    /// Lets nothing in any more, and hands out what is there.
    void expire(Consumer<T> back) {
        barred = true;
        for (Long number : List.copyOf(held.keySet())) {
            T taken = expire(number);
            if (taken != null) {
                back.accept(taken);
            }
        }
    }
}
