package io.kvcache.transport.endpoint;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/// Wrong proofs by the place that they come from. After ten of one place in a minute nothing from there is
/// looked at until the minute is over, so secrets are guessed slowly. Who joins a session by its ticket is
/// no stranger and is not counted here, so who guesses keeps nobody out who is in.
///
/// When secrets change all that is forgotten. A minute begins with its first wrong proof, which is logged,
/// as is the last that is looked at.
///
/// **Threads.** Any.
final class Tries {

    private static final System.Logger LOG = System.getLogger(Tries.class.getName());

    static final int MOST_WRONG = 10;
    static final Duration WRONG_LASTS = Duration.ofMinutes(1);
    private static final int MOST_PLACES = 10_000;
    private static final int LONGEST_SHOWN = 64;

    private static final int LOCKS = 64;

    private final Object[] locks = new Object[LOCKS];
    private final Cache<String, AtomicInteger> wrong;
    private volatile @Nullable Access counted;
    private final LongAdder wrongProofs;
    private final LongAdder unseenProofs;

    Tries(LongSupplier nanoClock, Counters counters) {
        Arrays.setAll(locks, _ -> new Object());
        wrongProofs = counters.wrongProofs;
        unseenProofs = counters.unseenProofs;
        wrong = Caffeine.newBuilder()
                .maximumSize(MOST_PLACES)
                .expireAfterWrite(WRONG_LASTS)
                .ticker(nanoClock::getAsLong)
                .executor(Runnable::run)
                .build();
    }

    /// Held from [#tooMany] until the proof is looked at and counted, so that of many proofs that come at once ten are
    /// looked at.
    Object lock(String place) {
        return locks[Math.floorMod(place.hashCode(), locks.length)];
    }

    /// Whether a proof from a place is not to be looked at; counts it then.
    ///
    /// @param access of this moment
    @SuppressWarnings("ReferenceEquality") // secrets that were read again are others, whatever they are
    boolean tooMany(String place, Access access) {
        if (access != counted) { // what was wrong may be right with other secrets
            counted = access;
            wrong.invalidateAll();
        }
        AtomicInteger before = wrong.getIfPresent(place);
        boolean many = before != null && before.get() >= MOST_WRONG;
        if (many) {
            unseenProofs.increment();
        }
        return many;
    }

    /// A proof was wrong.
    ///
    /// @param tenant in whose name, as the stranger said
    void wrong(String place, String tenant) {
        wrongProofs.increment();
        int count = wrong.asMap()
                .computeIfAbsent(place, first -> new AtomicInteger())
                .incrementAndGet();
        if (count == 1 || count == MOST_WRONG) {
            String more = count == 1 ? "" : ", the " + count + "th; no more is looked at for a while";
            LOG.log(
                    Level.WARNING,
                    "a client" + from(place) + " showed a wrong proof as tenant '" + shown(tenant) + "'" + more);
        }
    }

    private static String from(String place) {
        return place.isEmpty() ? "" : " at " + place;
    }

    /// What a stranger said, so that it makes no lines of its own in a log.
    private static String shown(String text) {
        String plain = text.replaceAll("[^\\x20-\\x26\\x28-\\x7e]", "?");
        return plain.length() <= LONGEST_SHOWN ? plain : plain.substring(0, LONGEST_SHOWN) + "...";
    }
}
