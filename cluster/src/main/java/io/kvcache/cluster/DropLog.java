package io.kvcache.cluster;

import io.kvcache.cluster.DropRecord.Kind;
import io.kvcache.cluster.DropRecord.NamespaceDigest;
import io.kvcache.core.identity.BlockKey;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// The drops that a server knows: a set that only grows, so that two servers agree once each has heard of what the
/// other one has.
///
/// - Of a namespace only the latest drop of all its blocks counts, and the drops of chains after it.
/// - Drops of chains are kept for [#MAX_AGE], and at most [#MAX_CHAINS] of them. The oldest ones of a namespace
///   then become a [floor][Kind#FLOOR]: a record that stands for all of them by the XOR of their identities.
///
/// The times of a namespace's drops grow at each server. Of drops on two sides of a partition the later one
/// counts, by the clocks of the servers.
///
/// **Threads.** One at a time.
public final class DropLog {

    /// Most drops of chains, about 12 MiB of heap.
    static final int MAX_CHAINS = 1 << 16;

    /// As long as a server may be away without losing a whole namespace for the drop of a chain.
    static final Duration MAX_AGE = Duration.ofDays(7);

    /// What is left when there were too many, so that each drop does not make a floor.
    private static final int CHAINS_LEFT = MAX_CHAINS / 4 * 3;

    private final Map<NamespaceDigest, Space> spaces = new HashMap<>();
    private int chainCount;
    private long digest;

    /// A drop of a chain, whatever time a server has given it.
    private record ChainDrop(BlockKey key, long id) {}

    /// The drops of one namespace.
    private static final class Space {

        private @Nullable DropRecord whole;
        private final Map<ChainDrop, DropRecord> chains = new HashMap<>();
        private long newestMillis;

        /// Returns the sum of all drops up to a time since the last one of the whole namespace.
        long sum(long untilMillis) {
            DropRecord last = whole;
            long sum = last == null ? 0 : last.kind() == Kind.FLOOR ? last.id() : last.identity();
            for (DropRecord chain : chains.values()) {
                sum ^= chain.millis() <= untilMillis ? chain.identity() : 0;
            }
            return sum;
        }
    }

    /// Returns the same number as a log with the same records; 0 if it has none.
    public long digest() {
        return digest;
    }

    /// Returns the number of records.
    public int size() {
        return chainCount
                + (int) spaces.values().stream()
                        .filter(space -> space.whole != null)
                        .count();
    }

    /// Returns whether there are too many drops of chains, see [#compact].
    boolean isFull() {
        return chainCount > MAX_CHAINS;
    }

    /// Returns all records, in an order that follows from them alone within each namespace.
    public List<DropRecord> records() {
        List<DropRecord> all = new ArrayList<>();
        for (Space space : spaces.values()) {
            if (space.whole != null) {
                all.add(space.whole);
            }
            all.addAll(space.chains.values());
        }
        all.sort(DropRecord.ORDER);
        return all;
    }

    /// Returns a time above those of all drops of a namespace.
    ///
    /// @param millis the least that is returned
    long nextMillis(NamespaceDigest namespace, long millis) {
        Space space = spaces.get(namespace);
        return space == null ? millis : Math.max(millis, space.newestMillis + 1);
    }

    /// Returns the record of a client's drop, or null if it is not known.
    @Nullable
    DropRecord find(NamespaceDigest namespace, @Nullable BlockKey key, long id) {
        Space space = spaces.get(namespace);
        if (space == null) {
            return null;
        }
        if (key != null) {
            return space.chains.get(new ChainDrop(key, id));
        }
        DropRecord whole = space.whole;
        return whole != null && whole.kind() == Kind.NAMESPACE && whole.id() == id ? whole : null;
    }

    /// Returns whether [#add] would change nothing. Of two records of the same drop the one with the earlier time
    /// stays, so that a server which has another clock hides no drop between the two.
    boolean contains(DropRecord drop) {
        Space space = spaces.get(drop.namespace());
        return space != null && (drop.isWhole() ? containsWhole(space, drop) : containsChain(space, drop));
    }

    private static boolean containsWhole(Space space, DropRecord drop) {
        DropRecord known = space.whole;
        if (known == null) {
            return false;
        }
        return isSameDrop(known, drop) ? known.millis() <= drop.millis() : DropRecord.ORDER.compare(drop, known) <= 0;
    }

    private static boolean containsChain(Space space, DropRecord drop) {
        DropRecord whole = space.whole;
        DropRecord known = space.chains.get(new ChainDrop(drop.key(), drop.id()));
        return (whole != null && drop.millis() <= whole.millis()) || (known != null && known.millis() <= drop.millis());
    }

    /// Returns whether two servers have made these of one drop of a client.
    private static boolean isSameDrop(DropRecord one, DropRecord other) {
        return one.kind() == other.kind() && one.kind() != Kind.FLOOR && one.identity() == other.identity();
    }

    /// Adds a drop.
    ///
    /// @return whether the store has to apply it, as it was not known
    public boolean add(DropRecord drop) {
        if (contains(drop)) {
            return false;
        }
        Space space = spaces.computeIfAbsent(drop.namespace(), namespace -> new Space());
        space.newestMillis = Math.max(space.newestMillis, drop.millis());
        return drop.isWhole() ? addWhole(space, drop) : addChain(space, drop);
    }

    private boolean addChain(Space space, DropRecord drop) {
        DropRecord before = space.chains.put(new ChainDrop(drop.key(), drop.id()), drop);
        count(before, drop);
        return before == null;
    }

    private boolean addWhole(Space space, DropRecord drop) {
        DropRecord before = space.whole;
        boolean known = drop.kind() == Kind.FLOOR
                ? space.sum(drop.millis()) == drop.id()
                : before != null && isSameDrop(before, drop);
        space.whole = drop;
        digest += drop.hash() - (before == null ? 0 : before.hash());
        space.chains.values().removeIf(chain -> {
            boolean outdated = chain.millis() <= drop.millis();
            if (outdated) {
                count(chain, null);
            }
            return outdated;
        });
        return !known;
    }

    private void count(@Nullable DropRecord before, @Nullable DropRecord after) {
        chainCount += (after == null ? 0 : 1) - (before == null ? 0 : 1);
        digest += (after == null ? 0 : after.hash()) - (before == null ? 0 : before.hash());
    }

    /// Makes floors of drops of chains that are too old, or too many.
    ///
    /// @return the floors, of which this server has applied everything
    List<DropRecord> compact(long nowMillis) {
        List<DropRecord> floors = new ArrayList<>();
        long oldest = nowMillis - MAX_AGE.toMillis();
        spaces.forEach((namespace, space) -> space.chains.values().stream()
                .mapToLong(DropRecord::millis)
                .filter(millis -> millis < oldest)
                .max()
                .ifPresent(millis -> floors.add(DropRecord.ofFloor(namespace, millis, space.sum(millis)))));
        floors.forEach(this::add);
        if (isFull()) {
            shrink(floors);
        }
        return floors;
    }

    /// Forgets the older half of the drops of the namespaces that have most.
    private void shrink(List<DropRecord> floors) {
        while (chainCount > CHAINS_LEFT) {
            Map.Entry<NamespaceDigest, Space> largest = spaces.entrySet().stream()
                    .max(Comparator.<Map.Entry<NamespaceDigest, Space>>comparingInt(
                                    each -> each.getValue().chains.size())
                            .thenComparingLong(each -> each.getKey().first()))
                    .orElseThrow();
            Space space = largest.getValue();
            long[] times = space.chains.values().stream()
                    .mapToLong(DropRecord::millis)
                    .sorted()
                    .toArray();
            long millis = times[times.length / 2];
            DropRecord floor = DropRecord.ofFloor(largest.getKey(), millis, space.sum(millis));
            add(floor);
            floors.add(floor);
        }
    }
}
