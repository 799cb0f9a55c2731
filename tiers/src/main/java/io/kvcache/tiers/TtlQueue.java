package io.kvcache.tiers;

import io.kvcache.core.Hint;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.spi.Clock;
import io.kvcache.core.store.HintApplier;
import io.kvcache.core.time.Timeouts;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.function.IntSupplier;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// Ends of chains that are let go first once a time is over, until it is.
///
/// Puts, loads, such hints and statistics look at the time,
/// so nothing happens in an idle store.
///
/// **Threads.** Any.
final class TtlQueue {

    private static final long MAX_TTL_NANOS = TimeUnit.DAYS.toNanos(30);

    private final Clock clock;
    private final HintApplier hintApplier;
    private final long start;
    private final TreeSet<Expiry> byTime =
            new TreeSet<>(Comparator.comparingLong(Expiry::expiresAtNanos).thenComparingLong(Expiry::number));
    private final Map<TtlKey, Expiry> byKey = new HashMap<>();
    private final Map<Integer, Integer> chargeOfGroup = new HashMap<>();
    private final Map<Namespace, Integer> groupOf = new HashMap<>();
    private long nextNumber;
    private long waitingBlocks;
    private long expiredBlocks;
    /// When the first of them is over, from the start.
    private volatile long nextExpiryNanos = Long.MAX_VALUE;

    /// The last block of a chain, or the last of some objects.
    record TtlKey(Namespace namespace, BlockKey key) {}

    /// Blocks or objects that are released together.
    ///
    /// @param length blocks, or objects
    /// @param release makes them next victims, and returns their number
    record ReleaseAction(int length, IntSupplier release) {}

    /// @param expiresAtNanos nanoseconds from the start
    private record Expiry(long expiresAtNanos, long number, int group, TtlKey key, ReleaseAction action) {}

    TtlQueue(Clock clock, HintApplier hintApplier) {
        this.clock = clock;
        this.hintApplier = hintApplier;
        start = clock.nanos();
    }

    /// Notes a hint in place of one that was there for the same last block.
    ///
    /// @param group of the chain's namespace
    /// @return whether it was taken
    boolean add(int group, Hint.Expire hint) {
        BlockChain chain = hint.chain();
        int blocks = chain.length() - hint.from();
        if (blocks <= 0) {
            return false;
        }
        TtlKey ttlKey = new TtlKey(chain.namespace(), chain.key(chain.length() - 1));
        BlockChain keys = ChainSuffixes.of(chain, hint.from());
        return add(
                group,
                ttlKey,
                new ReleaseAction(blocks, () -> hintApplier.release(keys, 0)),
                Timeouts.toNanos(hint.delay()));
    }

    /// Notes what is to be let go later in place of what was noted for the same place.
    ///
    /// @return whether it was taken
    synchronized boolean add(int group, TtlKey ttlKey, ReleaseAction releaseAction, long afterNanos) {
        moveToGroup(ttlKey.namespace(), group);
        Expiry before = byKey.get(ttlKey);
        int others = chargeOfGroup.getOrDefault(group, 0)
                - (before == null ? 0 : ChainSuffixes.charge(before.action.length()));
        if (others + ChainSuffixes.charge(releaseAction.length()) > ChainSuffixes.MAX_BLOCKS) {
            return false;
        }
        if (before != null) {
            remove(before);
        }
        long at = clock.nanos() - start + Math.min(afterNanos, MAX_TTL_NANOS);
        insert(new Expiry(at, nextNumber++, group, ttlKey, releaseAction));
        return true;
    }

    /// A namespace is of a group, and may have been of another before: what it has waiting goes
    /// along.
    private void moveToGroup(Namespace namespace, int group) {
        Integer before = groupOf.put(namespace, group);
        if (before == null || before == group) {
            return;
        }
        List<Expiry> own = byTime.stream()
                .filter(each -> each.key.namespace.equals(namespace))
                .toList();
        own.forEach(this::remove);
        own.forEach(each -> insert(new Expiry(each.expiresAtNanos, each.number, group, each.key, each.action)));
    }

    /// Lets go of what is due.
    void releaseExpired() {
        if (nextExpiryNanos == Long.MAX_VALUE || clock.nanos() - start < nextExpiryNanos) {
            return;
        }
        int released = 0;
        for (Expiry due : takeDue()) {
            released += due.action.release().getAsInt();
        }
        count(released);
    }

    /// Blocks whose time is not over.
    synchronized long waitingBlocks() {
        return waitingBlocks;
    }

    /// Blocks that became next victims so far.
    synchronized long expiredBlocks() {
        return expiredBlocks;
    }

    private synchronized void count(int released) {
        expiredBlocks += released;
    }

    private synchronized List<Expiry> takeDue() {
        long now = clock.nanos() - start;
        List<Expiry> due = new ArrayList<>();
        @Nullable Expiry first = byTime.isEmpty() ? null : byTime.first();
        while (first != null && first.expiresAtNanos <= now) {
            due.add(first);
            remove(first);
            first = byTime.isEmpty() ? null : byTime.first();
        }
        return due;
    }

    private void insert(Expiry expiry) {
        byTime.add(expiry);
        byKey.put(expiry.key, expiry);
        count(expiry, 1);
    }

    private void remove(Expiry expiry) {
        byTime.remove(expiry);
        byKey.remove(expiry.key);
        count(expiry, -1);
    }

    private void count(Expiry expiry, int sign) {
        chargeOfGroup.merge(expiry.group, sign * ChainSuffixes.charge(expiry.action.length()), Integer::sum);
        waitingBlocks += (long) sign * expiry.action.length();
        nextExpiryNanos = byTime.isEmpty() ? Long.MAX_VALUE : byTime.first().expiresAtNanos;
    }

    /// The keys of the last blocks of chains: all that is kept of a chain that is spoken of later.
    static final class ChainSuffixes {

        /// Kept for one purpose of each group of namespaces, so that no tenant takes another's, as [#charge]
        /// counts them: 2 to 4 MiB.
        static final int MAX_BLOCKS = 1 << 16;

        /// Charge for the state of one chain or list beside its keys, which takes about as much as eight keys.
        private static final int MIN_CHARGE = 8;

        private ChainSuffixes() {}

        /// Blocks that an end of a chain counts as where they are limited, so that many short ones take no
        /// more of the heap.
        ///
        /// @param blocks that it has
        static int charge(int blocks) {
            return Math.max(MIN_CHARGE, blocks);
        }

        /// A chain of the keys from one block on, with no memory shared with the one they are of.
        static BlockChain of(BlockChain chain, int from) {
            List<BlockKey> keys =
                    IntStream.range(from, chain.length()).mapToObj(chain::key).toList();
            return BlockChain.ofKeys(chain.namespace(), keys);
        }
    }
}
