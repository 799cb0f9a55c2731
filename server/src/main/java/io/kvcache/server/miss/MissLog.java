package io.kvcache.server.miss;

import com.fasterxml.jackson.annotation.JsonValue;
import io.kvcache.core.ChainListener;
import io.kvcache.core.event.EventKind;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.server.miss.MissCauses.Departure;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.time.InstantSource;
import java.util.ArrayDeque;
import java.util.Comparator;
import java.util.Deque;
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.BiPredicate;
import java.util.function.Predicate;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// The last look-ups that found less than they asked for, each with the reason, and how many of each reason
/// there were for blocks. Keyspaces count those of values.
///
/// Of each tenant the details of [#KEPT] are kept, and of no more than [#MAX_IN_A_TICK] between two ticks:
/// counting costs some nanoseconds a miss, details some hundred. So no tenant drives out what is kept of another
/// one.
///
/// **Threads.** Any; [#tick] one at a time.
public final class MissLog implements ChainListener {

    /// Misses of each tenant whose details are kept.
    public static final int KEPT = 256;

    private static final int MAX_IN_A_TICK = 16;
    private static final int MAX_KEY_BYTES = 256;
    private static final int MAX_SWITCHES = 64;

    private final InstantSource wall;
    private final MissCauses blockCauses;
    private final BiPredicate<Namespace, BlockKey> stored;
    private final ConcurrentMap<String, TenantMisses> tenants = new ConcurrentHashMap<>();
    private final Deque<OrderSwitch> switches = new ArrayDeque<>();

    /// Why a look-up found nothing, or less.
    public enum Reason {
        /// It was never stored, as far as is known.
        NEVER_SEEN,
        /// The store evicted it.
        EVICTED,
        /// Its tenant's quota was full.
        QUOTA,
        /// Its TTL expired.
        EXPIRED,
        /// A client deleted it.
        DELETED,
        /// Another server of the cluster may have a later value, so it was given up.
        OUTDATED,
        /// As much was being sent as may be.
        BUSY,
        /// It is on a disk, and did not come in time.
        LATE,
        /// It is on a disk, and computing it takes less time than reading it.
        COMPUTED_SOONER,
        /// The other half of the value was gone.
        OTHER_HALF;

        /// The reason of a key that was removed from the store.
        public static Reason of(EventKind kind) {
            return switch (kind) {
                case DROPPED -> DELETED;
                case QUOTA -> QUOTA;
                case STORED, EVICTED, REPLACED -> EVICTED;
            };
        }

        /// Returns its name in JSON and metrics, `never_seen`.
        @JsonValue
        public String label() {
            return name().toLowerCase(Locale.ROOT);
        }
    }

    /// A look-up that found less than it asked for.
    ///
    /// @param namespace model of the blocks, or name of the collection
    /// @param key of the value, or of the first missing block in hexadecimal
    /// @param leftSecondsAgo how long before the look-up it left; null when it is not known to have left
    /// @param orderedBy what evictions were ordered by when it left; null when it was not evicted
    public record Miss(
            Instant at,
            String tenant,
            Kind kind,
            String namespace,
            String key,
            int requested,
            int found,
            Reason reason,
            @Nullable Long leftSecondsAgo,
            @Nullable String orderedBy) {}

    /// What a look-up is about.
    public enum Kind {
        BLOCKS,
        OBJECT;

        /// Returns its name in JSON.
        @JsonValue
        String label() {
            return name().toLowerCase(Locale.ROOT);
        }
    }

    private record OrderSwitch(long atMillis, String orderedBy) {}

    /// @param blockCauses why blocks have left
    /// @param stored whether a block is in the store, in any tier
    public MissLog(InstantSource wall, MissCauses blockCauses, BiPredicate<Namespace, BlockKey> stored) {
        this.wall = wall;
        this.blockCauses = blockCauses;
        this.stored = stored;
    }

    /// Lets details of further misses in.
    ///
    /// @param orderedBy what evictions are ordered by now, `importance` or `lru`
    public void tick(String orderedBy) {
        tenants.values().forEach(each -> each.room.set(MAX_IN_A_TICK));
        OrderSwitch last = switches.peekLast();
        if (last == null || !last.orderedBy.equals(orderedBy)) {
            synchronized (switches) {
                switches.addLast(new OrderSwitch(wall.millis(), orderedBy));
                if (switches.size() > MAX_SWITCHES) {
                    switches.removeFirst();
                }
            }
        }
    }

    private @Nullable String orderAt(long millis) {
        synchronized (switches) {
            String order = switches.isEmpty() ? null : switches.getFirst().orderedBy;
            for (OrderSwitch each : switches) {
                order = each.atMillis <= millis ? each.orderedBy : order;
            }
            return order;
        }
    }

    @Override
    public void onAccess(BlockChain chain, int from, int found, int blockBytes) {
        int requested = chain.length() - from;
        if (found < requested) {
            recordBlocks(
                    chain.namespace(),
                    new BlockKey(chain.keyHi(from + found), chain.keyLo(from + found)),
                    requested,
                    found);
        }
    }

    private void recordBlocks(Namespace namespace, BlockKey key, int requested, int found) {
        Departure departure = blockCauses.departureOf(key);
        boolean onDisk = departure.cause() == Reason.EVICTED && stored.test(namespace, key);
        Reason reason = onDisk ? Reason.LATE : departure.cause();
        TenantMisses misses = missesOf(namespace.owner());
        Objects.requireNonNull(misses.ofBlocks.get(reason)).increment();
        if (misses.hasRoom()) {
            add(namespace, Kind.BLOCKS, key.toString(), requested, found, reason, departure);
        }
    }

    /// A look-up of a value found none.
    ///
    /// @param departure when and why it left, as far as is known; asked for if details are kept
    public void recordValue(Namespace namespace, byte[] key, Reason reason, Supplier<Departure> departure) {
        if (missesOf(namespace.owner()).hasRoom()) {
            String text = new String(key, 0, Math.min(key.length, MAX_KEY_BYTES), StandardCharsets.UTF_8);
            add(namespace, Kind.OBJECT, key.length > MAX_KEY_BYTES ? text + "…" : text, 1, 0, reason, departure.get());
        }
    }

    private void add(
            Namespace namespace, Kind kind, String key, int requested, int found, Reason reason, Departure departure) {
        long now = wall.millis();
        boolean left = departure.cause() != Reason.NEVER_SEEN;
        Miss miss = new Miss(
                Instant.ofEpochMilli(now),
                namespace.owner(),
                kind,
                namespace.model(),
                key,
                requested,
                found,
                reason,
                left ? departure.secondsAgo() : null,
                departure.cause() == Reason.EVICTED ? orderAt(now - departure.secondsAgo() * 1000) : null);
        missesOf(namespace.owner()).add(miss);
    }

    private TenantMisses missesOf(String tenant) {
        TenantMisses known = tenants.get(tenant);
        return known == null ? tenants.computeIfAbsent(tenant, _ -> new TenantMisses()) : known;
    }

    /// Returns the last misses that satisfy a predicate, newest first.
    ///
    /// @param tenant whose; null for those of all
    public List<Miss> recent(@Nullable String tenant, Predicate<Miss> wanted, int limit) {
        return tenants.entrySet().stream()
                .filter(each -> tenant == null || each.getKey().equals(tenant))
                .flatMap(each -> each.getValue().newestFirst().stream())
                .filter(wanted)
                .sorted(Comparator.comparing(Miss::at).reversed())
                .limit(limit)
                .toList();
    }

    /// Misses whose details are not kept.
    ///
    /// @param tenant whose; null for those of all
    public long notKeptCount(@Nullable String tenant) {
        return tenants.entrySet().stream()
                .filter(each -> tenant == null || each.getKey().equals(tenant))
                .mapToLong(each -> each.getValue().notKept.sum())
                .sum();
    }

    /// Returns how many look-ups of blocks ended early, by reason.
    ///
    /// @param tenant whose; null for those of all, also of tenants that the server's settings do not name
    public Map<Reason, Long> blockMisses(@Nullable String tenant) {
        Map<Reason, Long> counts = new EnumMap<>(Reason.class);
        tenants.forEach((of, misses) -> {
            if (tenant == null || of.equals(tenant)) {
                misses.ofBlocks.forEach((reason, counter) -> counts.merge(reason, counter.sum(), Long::sum));
            }
        });
        return counts;
    }

    /// The misses of one tenant.
    private static final class TenantMisses {

        /// Never changed, so that any thread may read it.
        private final Map<Reason, LongAdder> ofBlocks = new EnumMap<>(Reason.class);
        private final LongAdder notKept = new LongAdder();
        private final AtomicInteger room = new AtomicInteger(MAX_IN_A_TICK);
        private final Deque<Miss> recent = new ArrayDeque<>();

        TenantMisses() {
            for (Reason reason : Reason.values()) {
                ofBlocks.put(reason, new LongAdder());
            }
        }

        /// Takes one of the places for details, or counts that there was none.
        boolean hasRoom() {
            boolean is = room.get() > 0 && room.getAndDecrement() > 0;
            if (!is) {
                notKept.increment();
            }
            return is;
        }

        void add(Miss miss) {
            synchronized (recent) {
                if (recent.size() == KEPT) {
                    recent.removeFirst();
                    notKept.increment();
                }
                recent.addLast(miss);
            }
        }

        List<Miss> newestFirst() {
            synchronized (recent) {
                return List.copyOf(recent.reversed());
            }
        }
    }
}
