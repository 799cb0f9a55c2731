package io.kvcache.tiers;

import io.kvcache.core.Clock;
import io.kvcache.core.Hint;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.store.HintApplier;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.function.IntSupplier;
import org.jspecify.annotations.Nullable;

/// Ends of chains that are let go first once a time is over, until it is.
///
/// Time is looked at by who puts blocks and objects or has them loaded, who gives such a hint and
/// who asks for statistics, so nothing happens where nobody does.
///
/// **Threads.** Any.
final class Expiries {

    private static final long LONGEST_NANOS = TimeUnit.DAYS.toNanos(30);

    private final Clock clock;
    private final HintApplier forecast;
    private final long start;
    private final TreeSet<Expiry> byTime =
            new TreeSet<>(Comparator.comparingLong(Expiry::at).thenComparingLong(Expiry::number));
    private final Map<Place, Expiry> byPlace = new HashMap<>();
    private final Map<Integer, Integer> chargeOfGroup = new HashMap<>();
    private final Map<Namespace, Integer> groupOf = new HashMap<>();
    private long numbers;
    private long waiting;
    private long expired;
    /// When the first of them is over, from the start.
    private volatile long next = Long.MAX_VALUE;

    /// The last block of a chain, or the last of some objects.
    record Place(Namespace namespace, BlockKey key) {}

    /// What is let go together.
    ///
    /// @param length blocks, or objects
    /// @param release makes them next victims, and answers how many
    record Tail(int length, IntSupplier release) {}

    /// @param at nanoseconds from the start
    private record Expiry(long at, long number, int group, Place place, Tail tail) {}

    Expiries(Clock clock, HintApplier forecast) {
        this.clock = clock;
        this.forecast = forecast;
        start = clock.nanos();
    }

    /// Notes a hint in place of one that was there for the same last block.
    ///
    /// @param group of the chain's namespace
    /// @return whether it was taken
    boolean take(int group, Hint.Expire hint) {
        BlockChain chain = hint.chain();
        int blocks = chain.length() - hint.from();
        if (blocks <= 0) {
            return false;
        }
        Place place = new Place(chain.namespace(), chain.key(chain.length() - 1));
        BlockChain keys = Tails.of(chain, hint.from());
        return take(group, place, new Tail(blocks, () -> forecast.release(keys, 0)), hint.afterNanos());
    }

    /// Notes what is to be let go later in place of what was noted for the same place.
    ///
    /// @return whether it was taken
    synchronized boolean take(int group, Place place, Tail tail, long afterNanos) {
        regroup(place.namespace(), group);
        Expiry before = byPlace.get(place);
        int others = chargeOfGroup.getOrDefault(group, 0) - (before == null ? 0 : Tails.charge(before.tail.length()));
        if (others + Tails.charge(tail.length()) > Tails.MOST_BLOCKS) {
            return false;
        }
        if (before != null) {
            remove(before);
        }
        long at = clock.nanos() - start + Math.min(afterNanos, LONGEST_NANOS);
        add(new Expiry(at, numbers++, group, place, tail));
        return true;
    }

    /// A namespace is of a group, and may have been of another before: what it has waiting goes
    /// along.
    private void regroup(Namespace namespace, int group) {
        Integer before = groupOf.put(namespace, group);
        if (before == null || before == group) {
            return;
        }
        List<Expiry> own = byTime.stream()
                .filter(each -> each.place.namespace.equals(namespace))
                .toList();
        own.forEach(this::remove);
        own.forEach(each -> add(new Expiry(each.at, each.number, group, each.place, each.tail)));
    }

    /// Lets go of what is due.
    void sweep() {
        if (next == Long.MAX_VALUE || clock.nanos() - start < next) {
            return;
        }
        int released = 0;
        for (Expiry due : takeDue()) {
            released += due.tail.release().getAsInt();
        }
        count(released);
    }

    /// Blocks whose time is not over.
    synchronized long waiting() {
        return waiting;
    }

    /// Blocks that became next victims so far.
    synchronized long expired() {
        return expired;
    }

    private synchronized void count(int released) {
        expired += released;
    }

    private synchronized List<Expiry> takeDue() {
        long now = clock.nanos() - start;
        List<Expiry> due = new ArrayList<>();
        @Nullable Expiry first = byTime.isEmpty() ? null : byTime.first();
        while (first != null && first.at <= now) {
            due.add(first);
            remove(first);
            first = byTime.isEmpty() ? null : byTime.first();
        }
        return due;
    }

    private void add(Expiry expiry) {
        byTime.add(expiry);
        byPlace.put(expiry.place, expiry);
        count(expiry, 1);
    }

    private void remove(Expiry expiry) {
        byTime.remove(expiry);
        byPlace.remove(expiry.place);
        count(expiry, -1);
    }

    private void count(Expiry expiry, int sign) {
        chargeOfGroup.merge(expiry.group, sign * Tails.charge(expiry.tail.length()), Integer::sum);
        waiting += (long) sign * expiry.tail.length();
        next = byTime.isEmpty() ? Long.MAX_VALUE : byTime.first().at;
    }
}
