package io.kvcache.server.access;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import io.kvcache.core.Clock;
import io.kvcache.server.config.TenantConfig;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// Checks passwords.
///
/// **Guessing is slow.** Passwords that are not known to be right are checked on one thread, one after the other, and
/// no more than some wait there. After ten wrong ones in a minute from one address nothing from there is checked until
/// the minute is over. What is known to be right is let in at once all the while, so who guesses
/// keeps nobody out who has been in.
///
/// **Threads.** Any.
public final class Logins implements AutoCloseable {

    private static final int MOST_WAITING = 64;
    private static final int MOST_WRONG = 10;
    private static final Duration WRONG_LASTS = Duration.ofMinutes(1);
    private static final int MOST_ADDRESSES = 10_000;

    private final List<TenantConfig> tenants;
    private final SecureRandom random = new SecureRandom();
    private final Executor slow;
    private final @Nullable ThreadPoolExecutor own;
    private final Cache<String, AtomicInteger> wrong;
    private final LongAdder refused = new LongAdder();
    private final LongAdder delayed = new LongAdder();
    private final LongAdder in = new LongAdder();
    private final LongAdder elsewhere = new LongAdder();
    private volatile Credentials credentials;

    private Logins(List<TenantConfig> tenants, Clock clock, Executor slow, @Nullable ThreadPoolExecutor own)
            throws IOException {
        this.tenants = List.copyOf(tenants);
        this.slow = slow;
        this.own = own;
        wrong = Caffeine.newBuilder()
                .maximumSize(MOST_ADDRESSES)
                .expireAfterWrite(WRONG_LASTS)
                .ticker(clock::nanos)
                .executor(Runnable::run)
                .build();
        credentials = Credentials.load(this.tenants, random);
    }

    /// Reads the passwords of all tenants.
    ///
    /// @throws IOException when one cannot be used; the message says which and why
    public static Logins open(List<TenantConfig> tenants, Clock clock) throws IOException {
        ThreadPoolExecutor own = new ThreadPoolExecutor(
                1,
                1,
                1,
                TimeUnit.SECONDS,
                new ArrayBlockingQueue<>(MOST_WAITING),
                Thread.ofPlatform().daemon().name("kvcache-login").factory());
        own.allowCoreThreadTimeOut(true);
        return new Logins(tenants, clock, own, own);
    }

    /// Checks on an executor of the caller's.
    static Logins on(Executor slow, List<TenantConfig> tenants, Clock clock) throws IOException {
        return new Logins(tenants, clock, slow, null);
    }

    /// Nobody has a password.
    public static Logins none(Clock clock) {
        try {
            return on(Runnable::run, List.of(), clock);
        } catch (IOException none) {
            throw new IllegalStateException("no file was read", none);
        }
    }

    /// Reads all passwords again. Who is in stays in.
    ///
    /// @throws IOException when one cannot be used; the ones from before stay
    public void reload() throws IOException {
        credentials = Credentials.load(tenants, random);
    }

    /// Whether anybody is called so.
    boolean has(String user) {
        return credentials.has(user);
    }

    /// Finds out who somebody is.
    ///
    /// @param from for counting wrong passwords
    /// @param then told the verdict, at once or later on another thread
    void ask(SocketAddress from, String user, String password, Consumer<Verdict> then) {
        Credentials now = credentials;
        String known = now.recall(user, password);
        if (known != null) {
            then.accept(new Verdict(Verdict.Outcome.IN, known));
            return;
        }
        String address = address(from);
        AtomicInteger before = wrong.getIfPresent(address);
        if (before != null && before.get() >= MOST_WRONG) {
            delayed.increment();
            then.accept(Verdict.LATER);
            return;
        }
        try {
            slow.execute(() -> then.accept(check(now, address, user, password)));
        } catch (RejectedExecutionException full) {
            delayed.increment();
            then.accept(Verdict.LATER);
        }
    }

    private Verdict check(Credentials now, String address, String user, String password) {
        String tenant = now.check(user, password);
        if (tenant != null) {
            return new Verdict(Verdict.Outcome.IN, tenant);
        }
        refused.increment();
        wrong.asMap().computeIfAbsent(address, _ -> new AtomicInteger()).incrementAndGet();
        return Verdict.WRONG;
    }

    private static String address(SocketAddress from) {
        return from instanceof InetSocketAddress inet && inet.getAddress() != null
                ? inet.getAddress().getHostAddress()
                : "";
    }

    /// Somebody came in.
    void cameIn() {
        in.increment();
    }

    /// Somebody was right, at a listener of another tenant.
    void wasElsewhere() {
        elsewhere.increment();
    }

    /// Log-ins that ended well. Over HTTP each request with a password is one.
    public long inCount() {
        return in.sum();
    }

    /// Log-ins with the right password, at a listener of another tenant.
    public long elsewhereCount() {
        return elsewhere.sum();
    }

    /// Log-ins with a wrong user or password.
    public long refusedCount() {
        return refused.sum();
    }

    /// Log-ins that were not looked at because there were too many.
    public long delayedCount() {
        return delayed.sum();
    }

    @Override
    public void close() {
        if (own != null) {
            own.shutdownNow();
        }
    }
}
