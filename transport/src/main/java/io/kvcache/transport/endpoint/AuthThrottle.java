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

/// Counts wrong proofs by address. After ten from one address in a minute, further proofs from there are rejected
/// without a check until the minute is over, so secrets can be guessed only slowly. A client that joins a session
/// by its ticket is not counted here, so guesses do not lock out authenticated clients.
///
/// A change of the secrets clears the counts. A minute begins with its first wrong proof, which is logged, as is
/// the last one that is checked.
///
/// **Threads.** Any.
final class AuthThrottle {

    private static final System.Logger LOG = System.getLogger(AuthThrottle.class.getName());

    static final int MAX_FAILURES = 10;
    static final Duration FAILURE_WINDOW = Duration.ofMinutes(1);
    private static final int MAX_ADDRESSES = 10_000;
    private static final int MAX_LOGGED_CHARS = 64;

    private static final int LOCKS = 64;

    private final Object[] locks = new Object[LOCKS];
    private final Cache<String, AtomicInteger> failures;
    private volatile @Nullable EndpointAuthentication counted;
    private final LongAdder wrongProofs;
    private final LongAdder throttledProofs;

    AuthThrottle(LongSupplier nanoClock, EndpointStats.Counters counters) {
        Arrays.setAll(locks, _ -> new Object());
        wrongProofs = counters.wrongProofs;
        throttledProofs = counters.throttledProofs;
        failures = Caffeine.newBuilder()
                .maximumSize(MAX_ADDRESSES)
                .expireAfterWrite(FAILURE_WINDOW)
                .ticker(nanoClock::getAsLong)
                .executor(Runnable::run)
                .build();
    }

    /// Returns the lock to hold from [#isThrottled] until the proof is checked and counted, so that only ten of
    /// many concurrent proofs are checked.
    Object lockFor(String address) {
        return locks[Math.floorMod(address.hashCode(), locks.length)];
    }

    /// Returns whether a proof from this address is rejected without a check, and counts it then.
    ///
    /// @param endpointAuth of this moment
    @SuppressWarnings("ReferenceEquality") // secrets that were read again are others, whatever they are
    boolean isThrottled(String address, EndpointAuthentication endpointAuth) {
        if (endpointAuth != counted) { // what was wrong may be right with other secrets
            counted = endpointAuth;
            failures.invalidateAll();
        }
        AtomicInteger before = failures.getIfPresent(address);
        boolean many = before != null && before.get() >= MAX_FAILURES;
        if (many) {
            throttledProofs.increment();
        }
        return many;
    }

    /// Counts a wrong proof.
    ///
    /// @param tenant that the client claimed to be
    void recordFailure(String address, String tenant) {
        wrongProofs.increment();
        int count = failures.asMap()
                .computeIfAbsent(address, first -> new AtomicInteger())
                .incrementAndGet();
        if (count == 1 || count == MAX_FAILURES) {
            String more = count == 1 ? "" : ", the " + count + "th; no more is looked at for a while";
            LOG.log(
                    Level.WARNING,
                    "a client" + describeAddress(address) + " showed a wrong proof as tenant '" + sanitize(tenant) + "'"
                            + more);
        }
    }

    private static String describeAddress(String address) {
        return address.isEmpty() ? "" : " at " + address;
    }

    /// Returns text of an unauthenticated client without line breaks, so that it cannot forge log lines.
    private static String sanitize(String text) {
        String plain = text.replaceAll("[^\\x20-\\x26\\x28-\\x7e]", "?");
        return plain.length() <= MAX_LOGGED_CHARS ? plain : plain.substring(0, MAX_LOGGED_CHARS) + "...";
    }
}
