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
final class PerAddressCounts<T> {

    private final Map<T, String> addressOf = new HashMap<>();

    /// In the order in which they came.
    private final Map<String, SequencedSet<T>> byAddress = new HashMap<>();

    /// The places that as many come from, in the order in which they came to be such.
    private final TreeMap<Integer, SequencedSet<String>> bySize = new TreeMap<>();

    int size() {
        return addressOf.size();
    }

    /// Somebody is there, who was not.
    void add(T element, String address) {
        addressOf.put(element, address);
        SequencedSet<T> crowd = byAddress.computeIfAbsent(address, first -> new LinkedHashSet<>());
        crowd.add(element);
        updateSize(address, crowd.size() - 1, crowd.size());
    }

    /// Answers whether he was there.
    boolean remove(T element) {
        String address = addressOf.remove(element);
        SequencedSet<T> crowd = address == null ? null : byAddress.get(address);
        if (address == null || crowd == null) {
            return false;
        }
        crowd.remove(element);
        updateSize(address, crowd.size() + 1, crowd.size());
        if (crowd.isEmpty()) {
            byAddress.remove(address);
        }
        return true;
    }

    private void updateSize(String address, int before, int now) {
        SequencedSet<String> old = bySize.get(before);
        if (old != null) {
            old.remove(address);
            if (old.isEmpty()) {
                bySize.remove(before);
            }
        }
        if (now > 0) {
            bySize.computeIfAbsent(now, first -> new LinkedHashSet<>()).add(address);
        }
    }

    /// Who has been there longest of the place that most come from; of several such places, of the
    /// one that has been such for longest. Null when nobody is there.
    @Nullable
    T oldestOfBusiestAddress() {
        Map.Entry<Integer, SequencedSet<String>> largest = bySize.lastEntry();
        SequencedSet<T> crowd =
                largest == null ? null : byAddress.get(largest.getValue().getFirst());
        return crowd == null ? null : crowd.getFirst();
    }
}
