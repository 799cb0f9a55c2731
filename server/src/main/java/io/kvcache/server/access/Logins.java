package io.kvcache.server.access;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import io.kvcache.core.Clock;
import io.kvcache.server.config.TenantConfig;
import io.kvcache.server.net.ClientAddress;
import java.io.IOException;
import java.net.SocketAddress;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// Checks passwords.
///
/// **Guessing is slow.** A wrong password counts for its address and user. After ten of one user, or a hundred in all,
/// nothing from that address is looked at until a minute after the first, not even what is known to be right: or the
/// answer would tell a guesser what is. Log-ins of one address are looked at one after the other, so that the counter
/// is exact however many come at once.
///
/// **Fair.** Passwords that are not known to be right are hashed on one thread. An address has one hash there at a
/// time,
/// and its other log-ins wait behind that, so an address that floods delays those of others by one hash.
///
/// **Threads.** Any.
public final class Logins implements AutoCloseable {

    private static final System.Logger LOG = System.getLogger(Logins.class.getName());

    /// Addresses with a hash to be done: 16 seconds, as long as clients wait.
    private static final int MOST_HASHES = 64;

    /// Log-ins of one address that wait: as many as a pool of connections opens at once.
    private static final int MOST_WAITING = 256;

    private static final int MOST_WRONG = 10;
    private static final int MOST_WRONG_OF_ADDRESS = 100;

    /// How long wrong passwords keep an address out.
    public static final Duration WRONG_LASTS = Duration.ofMinutes(1);
    private static final int MOST_ADDRESSES = 10_000;

    private final List<TenantConfig> tenants;
    private final SecureRandom random = new SecureRandom();
    private final Executor slow;
    private final @Nullable ThreadPoolExecutor own;
    private final Clock clock;
    private final Cache<String, Caller> callers;
    private final LongAdder refused = new LongAdder();
    private final LongAdder delayed = new LongAdder();
    private final LongAdder in = new LongAdder();
    private final LongAdder elsewhere = new LongAdder();
    private final RefusedLogins log;
    private volatile Credentials credentials;

    private Logins(List<TenantConfig> tenants, Clock clock, Executor slow, @Nullable ThreadPoolExecutor own)
            throws IOException {
        this.tenants = List.copyOf(tenants);
        this.slow = slow;
        this.own = own;
        this.clock = clock;
        log = new RefusedLogins(clock);
        callers = Caffeine.newBuilder()
                .maximumSize(MOST_ADDRESSES)
                .expireAfterAccess(WRONG_LASTS)
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
                new ArrayBlockingQueue<>(MOST_HASHES),
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
        callers.invalidateAll(); // what was wrong may be right by now
    }

    /// The passwords of this moment, to be told from those of another.
    Object moment() {
        return credentials;
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
        Caller caller = callers.get(ClientAddress.of(from), _ -> new Caller());
        Login login = new Login(user, password, then);
        Verdict verdict;
        synchronized (caller) {
            if (!caller.hashes) {
                verdict = look(caller, login);
                caller.hashes = verdict == null;
            } else if (caller.waiting.size() < MOST_WAITING) {
                caller.waiting.add(login);
                return;
            } else {
                delayed.increment();
                verdict = Verdict.LATER;
            }
        }
        if (verdict == null) {
            hash(caller, login);
        } else {
            tell(login, verdict);
        }
    }

    /// What can be said without a hash, or null; the caller's lock is held.
    private @Nullable Verdict look(Caller caller, Login login) {
        if (caller.hasTooMany(login.user, clock.nanos())) {
            delayed.increment();
            return Verdict.LATER;
        }
        String known = credentials.recall(login.user, login.password);
        return known == null ? null : new Verdict(Verdict.Outcome.IN, known);
    }

    private void hash(Caller caller, Login login) {
        try {
            slow.execute(() -> {
                Verdict verdict = Verdict.LATER;
                try {
                    verdict = check(login);
                } finally {
                    hashed(caller, login, verdict);
                }
            });
        } catch (RejectedExecutionException full) {
            delayed.increment();
            hashed(caller, login, Verdict.LATER);
        }
    }

    private Verdict check(Login login) {
        String tenant = credentials.check(login.user, login.password);
        if (tenant != null) {
            return new Verdict(Verdict.Outcome.IN, tenant);
        }
        refused.increment();
        return Verdict.WRONG;
    }

    /// Goes on with what waits behind a log-in, up to the next that takes a hash.
    private void hashed(Caller caller, Login first, Verdict of) {
        Login login = first;
        Verdict verdict = of;
        synchronized (caller) {
            if (of.outcome() == Verdict.Outcome.WRONG) {
                caller.wrong(first.user, clock.nanos());
            }
        }
        while (login != null && verdict != null) {
            tell(login, verdict);
            synchronized (caller) {
                login = caller.waiting.poll();
                verdict = login == null ? null : look(caller, login);
                caller.hashes = login != null;
            }
        }
        if (login != null) {
            hash(caller, login);
        }
    }

    private static void tell(Login login, Verdict verdict) {
        try {
            login.then.accept(verdict);
        } catch (RuntimeException bug) { // what waits behind it goes on
            LOG.log(System.Logger.Level.WARNING, "a log-in could not be answered", bug);
        }
    }

    private record Login(String user, String password, Consumer<Verdict> then) {}

    /// One address. Guarded by itself.
    private static final class Caller {

        /// By the hash of a user's name: names may be long, and a stranger chooses them.
        private final Map<Integer, Integer> wrong = new HashMap<>();

        private final Deque<Login> waiting = new ArrayDeque<>();
        private boolean hashes;
        private int wrongs;
        private long firstNanos;

        boolean hasTooMany(String user, long now) {
            if (now - firstNanos >= WRONG_LASTS.toNanos()) {
                wrong.clear();
                wrongs = 0;
            }
            return wrongs >= MOST_WRONG_OF_ADDRESS || wrong.getOrDefault(user.hashCode(), 0) >= MOST_WRONG;
        }

        void wrong(String user, long now) {
            firstNanos = wrongs == 0 ? now : firstNanos;
            wrongs++;
            wrong.merge(user.hashCode(), 1, Integer::sum);
        }
    }

    /// Where those are logged who do not come in.
    RefusedLogins log() {
        return log;
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
