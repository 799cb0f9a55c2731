package io.kvcache.transport.endpoint;

import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.SequencedSet;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/// Who is there from which place, and where most are. What it costs does not grow with how many
/// there are, but for a search among the numbers that places have: those who come in crowds are
/// counted under a lock that others need.
///
/// Not safe for several threads.
///
/// @param <T> who
final class Crowds<T> {

    private final Map<T, String> placeOf = new HashMap<>();

    /// In the order in which they came.
    private final Map<String, SequencedSet<T>> from = new HashMap<>();

    /// The places that as many come from, in the order in which they came to be such.
    private final TreeMap<Integer, SequencedSet<String>> bySize = new TreeMap<>();

    int size() {
        return placeOf.size();
    }

    /// Somebody is there, who was not.
    void add(T who, String place) {
        placeOf.put(who, place);
        SequencedSet<T> crowd = from.computeIfAbsent(place, first -> new LinkedHashSet<>());
        crowd.add(who);
        moved(place, crowd.size() - 1, crowd.size());
    }

    /// Answers whether he was there.
    boolean remove(T who) {
        String place = placeOf.remove(who);
        SequencedSet<T> crowd = place == null ? null : from.get(place);
        if (place == null || crowd == null) {
            return false;
        }
        crowd.remove(who);
        moved(place, crowd.size() + 1, crowd.size());
        if (crowd.isEmpty()) {
            from.remove(place);
        }
        return true;
    }

    private void moved(String place, int before, int now) {
        SequencedSet<String> old = bySize.get(before);
        if (old != null) {
            old.remove(place);
            if (old.isEmpty()) {
                bySize.remove(before);
            }
        }
        if (now > 0) {
            bySize.computeIfAbsent(now, first -> new LinkedHashSet<>()).add(place);
        }
    }

    /// Who has been there longest of the place that most come from; of several such places, of the
    /// one that has been such for longest. Null when nobody is there.
    @Nullable
    T longestOfLargest() {
        Map.Entry<Integer, SequencedSet<String>> largest = bySize.lastEntry();
        SequencedSet<T> crowd =
                largest == null ? null : from.get(largest.getValue().getFirst());
        return crowd == null ? null : crowd.getFirst();
    }
}
