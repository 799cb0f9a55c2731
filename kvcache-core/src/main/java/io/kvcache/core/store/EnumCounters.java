package io.kvcache.core.store;

import java.util.EnumMap;
import java.util.Objects;

/// One counter for each constant of an enum. Owned by the store's lock.
final class EnumCounters<E extends Enum<E>> {

    private final EnumMap<E, long[]> counts;

    EnumCounters(Class<E> kinds) {
        counts = new EnumMap<>(kinds);
        for (E each : kinds.getEnumConstants()) {
            counts.put(each, new long[1]);
        }
    }

    void add(E kind) {
        count(kind)[0]++;
    }

    long total(E kind) {
        return count(kind)[0];
    }

    private long[] count(E kind) {
        return Objects.requireNonNull(counts.get(kind));
    }
}
