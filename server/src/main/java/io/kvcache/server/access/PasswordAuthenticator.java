package io.kvcache.server.access;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import io.kvcache.core.spi.Clock;
import io.kvcache.server.config.TenantConfig;
import io.kvcache.server.log.LogRateLimiter;
import io.kvcache.server.net.Connection.ClientAddress;
import java.io.IOException;
import java.lang.System.Logger.Level;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// Checks passwords.
///
/// **Guessing is slow.** A wrong password counts for its address and user. After ten of one user, or a hundred in
/// all, nothing from that address is looked at until a minute after the first, not even what is known to be right:
/// or the answer would tell a guesser what is. Log-ins of one address are looked at one after the other, so that
/// the counter is exact however many come at once.
///
/// **Fair.** Passwords that are not known to be right are hashed on one thread. An address has one hash there at a
/// time,
/// and its other log-ins wait behind that, so an address that floods delays those of others by one hash.
///
/// **Threads.** Any.
public final class PasswordAuthenticator implements AutoCloseable {

    private static final System.Logger LOG = System.getLogger(PasswordAuthenticator.class.getName());

    /// Addresses with a hash to be done: 16 seconds, as long as clients wait.
    private static final int MAX_PENDING_HASHES = 64;

    /// Log-ins of one address that wait: as many as a pool of connections opens at once.
    private static final int MAX_WAITING_PER_ADDRESS = 256;

    private static final int MAX_FAILURES_PER_USER = 10;
    private static final int MAX_FAILURES_PER_ADDRESS = 100;

    /// How long wrong passwords keep an address out.
    public static final Duration FAILURE_WINDOW = Duration.ofMinutes(1);
    private static final int MAX_ADDRESSES = 10_000;

    private final List<TenantConfig> tenants;
    private final SecureRandom random = new SecureRandom();
    private final Executor hashExecutor;
    private final @Nullable ThreadPoolExecutor ownedExecutor;
    private final Clock clock;
    private final Cache<String, ClientState> clients;
    private final LongAdder denied = new LongAdder();
    private final LongAdder throttled = new LongAdder();
    private final LongAdder succeeded = new LongAdder();
    private final LongAdder wrongListener = new LongAdder();
    private final FailedLoginLog log;
    private volatile CredentialStore credentialStore;

    private PasswordAuthenticator(
            List<TenantConfig> tenants, Clock clock, Executor slow, @Nullable ThreadPoolExecutor own)
            throws IOException {
        this.tenants = List.copyOf(tenants);
        this.hashExecutor = slow;
        this.ownedExecutor = own;
        this.clock = clock;
        log = new FailedLoginLog(clock);
        clients = Caffeine.newBuilder()
                .maximumSize(MAX_ADDRESSES)
                .expireAfterAccess(FAILURE_WINDOW)
                .ticker(clock::nanos)
                .executor(Runnable::run)
                .build();
        credentialStore = CredentialStore.load(this.tenants, random);
    }

    /// Reads the passwords of all tenants.
    ///
    /// @throws IOException when one cannot be used; the message says which and why
    public static PasswordAuthenticator open(List<TenantConfig> tenants, Clock clock) throws IOException {
        ThreadPoolExecutor own = new ThreadPoolExecutor(
                1,
                1,
                1,
                TimeUnit.SECONDS,
                new ArrayBlockingQueue<>(MAX_PENDING_HASHES),
                Thread.ofPlatform().daemon().name("kvcache-login").factory());
        own.allowCoreThreadTimeOut(true);
        return new PasswordAuthenticator(tenants, clock, own, own);
    }

    /// Checks on an executor of the caller's.
    static PasswordAuthenticator withExecutor(Executor slow, List<TenantConfig> tenants, Clock clock)
            throws IOException {
        return new PasswordAuthenticator(tenants, clock, slow, null);
    }

    /// Reads all passwords again. Authenticated clients stay authenticated.
    ///
    /// @throws IOException when one cannot be used; the ones from before stay
    public void reload() throws IOException {
        credentialStore = CredentialStore.load(tenants, random);
        clients.invalidateAll(); // what was wrong may be right by now
    }

    /// The passwords of this moment, to be told from those of another.
    Object credentialsVersion() {
        return credentialStore;
    }

    /// Returns whether a user of this name exists.
    boolean hasUser(String user) {
        return credentialStore.hasUser(user);
    }

    /// Authenticates a user.
    ///
    /// @param from for counting wrong passwords
    /// @param callback told the verdict, at once or later on another thread
    void authenticate(SocketAddress from, String user, String password, Consumer<AuthResult> callback) {
        ClientState client = clients.get(ClientAddress.of(from), _ -> new ClientState());
        LoginAttempt loginAttempt = new LoginAttempt(user, password, callback);
        AuthResult authResult;
        synchronized (client) {
            if (!client.hashing) {
                authResult = checkWithoutHash(client, loginAttempt);
                client.hashing = authResult == null;
            } else if (client.waiting.size() < MAX_WAITING_PER_ADDRESS) {
                client.waiting.add(loginAttempt);
                return;
            } else {
                throttled.increment();
                authResult = AuthResult.THROTTLED;
            }
        }
        if (authResult == null) {
            queueHash(client, loginAttempt);
        } else {
            complete(loginAttempt, authResult);
        }
    }

    /// Returns the outcome if it can be told without hashing, or null. The caller holds the lock.
    private @Nullable AuthResult checkWithoutHash(ClientState client, LoginAttempt loginAttempt) {
        if (client.hasTooManyFailures(loginAttempt.user, clock.nanos())) {
            throttled.increment();
            return AuthResult.THROTTLED;
        }
        String known = credentialStore.findVerified(loginAttempt.user, loginAttempt.password);
        return known == null ? null : new AuthResult(AuthResult.Outcome.OK, known);
    }

    private void queueHash(ClientState client, LoginAttempt loginAttempt) {
        try {
            hashExecutor.execute(() -> {
                AuthResult authResult = AuthResult.THROTTLED;
                try {
                    authResult = check(loginAttempt);
                } finally {
                    onHashed(client, loginAttempt, authResult);
                }
            });
        } catch (RejectedExecutionException full) {
            throttled.increment();
            onHashed(client, loginAttempt, AuthResult.THROTTLED);
        }
    }

    private AuthResult check(LoginAttempt loginAttempt) {
        String tenant = credentialStore.verify(loginAttempt.user, loginAttempt.password);
        if (tenant != null) {
            return new AuthResult(AuthResult.Outcome.OK, tenant);
        }
        denied.increment();
        return AuthResult.DENIED;
    }

    /// Goes on with what waits behind a log-in, up to the next that takes a hash.
    private void onHashed(ClientState client, LoginAttempt first, AuthResult of) {
        LoginAttempt loginAttempt = first;
        AuthResult authResult = of;
        synchronized (client) {
            if (of.outcome() == AuthResult.Outcome.DENIED) {
                client.recordFailure(first.user, clock.nanos());
            }
        }
        while (loginAttempt != null && authResult != null) {
            complete(loginAttempt, authResult);
            synchronized (client) {
                loginAttempt = client.waiting.poll();
                authResult = loginAttempt == null ? null : checkWithoutHash(client, loginAttempt);
                client.hashing = loginAttempt != null;
            }
        }
        if (loginAttempt != null) {
            queueHash(client, loginAttempt);
        }
    }

    private static void complete(LoginAttempt loginAttempt, AuthResult authResult) {
        try {
            loginAttempt.then.accept(authResult);
        } catch (RuntimeException bug) { // what waits behind it goes on
            LOG.log(System.Logger.Level.WARNING, "a log-in failed by a bug", bug);
        }
    }

    private record LoginAttempt(String user, String password, Consumer<AuthResult> then) {}

    /// One address. Guarded by itself.
    private static final class ClientState {

        /// By the hash of a user's name: names may be long, and a stranger chooses them.
        private final Map<Integer, Integer> wrong = new HashMap<>();

        private final Deque<LoginAttempt> waiting = new ArrayDeque<>();
        private boolean hashing;
        private int failureCount;
        private long firstNanos;

        boolean hasTooManyFailures(String user, long now) {
            if (now - firstNanos >= FAILURE_WINDOW.toNanos()) {
                wrong.clear();
                failureCount = 0;
            }
            return failureCount >= MAX_FAILURES_PER_ADDRESS
                    || wrong.getOrDefault(user.hashCode(), 0) >= MAX_FAILURES_PER_USER;
        }

        void recordFailure(String user, long now) {
            firstNanos = failureCount == 0 ? now : firstNanos;
            failureCount++;
            wrong.merge(user.hashCode(), 1, Integer::sum);
        }
    }

    /// Logs the rejected clients.
    FailedLoginLog failedLoginLog() {
        return log;
    }

    /// A client authenticated.
    void recordSuccess() {
        succeeded.increment();
    }

    /// A password was right, but at a listener of another tenant.
    void recordWrongListener() {
        wrongListener.increment();
    }

    /// Log-ins that ended well. Over HTTP each request with a password is one.
    public long successCount() {
        return succeeded.sum();
    }

    /// Log-ins with the right password, at a listener of another tenant.
    public long wrongListenerCount() {
        return wrongListener.sum();
    }

    /// Log-ins with a wrong user or password.
    public long deniedCount() {
        return denied.sum();
    }

    /// Log-ins that were not looked at because there were too many.
    public long throttledCount() {
        return throttled.sum();
    }

    @Override
    public void close() {
        if (ownedExecutor != null) {
            ownedExecutor.shutdownNow();
        }
    }

    /// The result of a log-in.
    ///
    /// @param tenant of the client; null unless the outcome is [Outcome#OK]
    public record AuthResult(Outcome outcome, @Nullable String tenant) {

        /// The client did not authenticate.
        public static final AuthResult MISSING = new AuthResult(Outcome.MISSING, null);

        static final AuthResult DENIED = new AuthResult(Outcome.DENIED, null);
        static final AuthResult THROTTLED = new AuthResult(Outcome.THROTTLED, null);

        /// The kinds of it.
        public enum Outcome {
            /// The client is authenticated.
            OK,
            /// It was not said, or not so that it can be understood.
            MISSING,
            /// The user does not exist, the password is wrong, or this listener does not admit the user.
            DENIED,
            /// There were too many wrong ones lately: nothing was looked at.
            THROTTLED
        }
    }

    /// Logs rejected clients and their addresses: no more than some lines a minute, as a client that guesses
    /// passwords must not fill the log.
    ///
    /// **Threads.** Any.
    static final class FailedLoginLog {

        private static final int MAX_LINES = 20;
        private static final Duration WINDOW = Duration.ofMinutes(1);

        /// Longest part of a user name that is logged. The client chooses the name.
        private static final int MAX_NAME_LENGTH = 64;

        private final LogRateLimiter limit;

        FailedLoginLog(Clock clock) {
            limit = new LogRateLimiter(clock, MAX_LINES, WINDOW);
        }

        /// Logs one, if the log has room. Never shows what was given for a password.
        ///
        /// @param why `wrong user or password`
        void log(SocketAddress from, String user, String why) {
            long unsaid = limit.tryAcquire();
            if (unsaid != LogRateLimiter.SUPPRESSED) {
                String name = user.length() <= MAX_NAME_LENGTH ? user : user.substring(0, MAX_NAME_LENGTH) + "...";
                LOG.log(
                        Level.WARNING,
                        "Log-in refused: " + why + ", user '" + name + "', from " + text(from)
                                + LogRateLimiter.suppressedNote(unsaid));
            }
        }

        private static String text(SocketAddress from) {
            return from instanceof InetSocketAddress inet && inet.getAddress() != null
                    ? inet.getAddress().getHostAddress() + ":" + inet.getPort()
                    : String.valueOf(from);
        }
    }

    /// All passwords as of one moment, and which tenant each user is.
    ///
    /// **Two ways to check.** A hash is slow to check by design, a quarter of a second. Clients that connect often
    /// cannot pay that each time. So a pair of user and password that was right once is remembered, as a SHA-256
    /// over a random number of this process and the pair. So are passwords that a file has in the clear. Only
    /// correct pairs are remembered, so there are at most as many as passwords.
    ///
    /// **Threads.** Any.
    static final class CredentialStore {

        private record User(String tenant, List<PasswordHash> hashes) {}

        private final Map<String, User> users = new HashMap<>();
        private final Map<ByteBuffer, String> verifiedPairs = new ConcurrentHashMap<>();
        private final byte[] pepper = new byte[32];
        /// Compared for users that there are not: as slow as the slowest hash of a user.
        private PasswordHash decoyHash;

        private CredentialStore(SecureRandom random) {
            random.nextBytes(pepper);
            decoyHash = PasswordHash.unmatchable(PasswordHash.DEFAULT_ITERATIONS, random);
        }

        /// Reads passwords and their files.
        ///
        /// @throws IOException when one cannot be used; the message names the setting and the file, never what
        ///     is in it
        static CredentialStore load(List<TenantConfig> tenants, SecureRandom random) throws IOException {
            CredentialStore all = new CredentialStore(random);
            for (TenantConfig tenant : tenants) {
                List<PasswordHash> hashes = new ArrayList<>();
                if (tenant.passwordHash() != null) {
                    hashes.add(hash(tenant.path() + ".password_hash", tenant.passwordHash()));
                }
                if (tenant.passwordFile() != null) {
                    all.readPasswordFile(tenant, tenant.passwordFile(), hashes);
                }
                if (tenant.hasPassword()) {
                    all.users.put(tenant.user(), new User(tenant.name(), List.copyOf(hashes)));
                }
            }
            all.users.values().stream()
                    .flatMap(user -> user.hashes().stream())
                    .mapToInt(PasswordHash::iterations)
                    .max()
                    .ifPresent(slowest -> all.decoyHash = PasswordHash.unmatchable(slowest, random));
            return all;
        }

        private void readPasswordFile(TenantConfig tenant, String file, List<PasswordHash> hashes) throws IOException {
            String setting = tenant.path() + ".password_file " + file;
            for (String line : SecretFile.readPrivateLines(tenant.path() + ".password_file", file, "password")) {
                if (PasswordHash.isHash(line)) {
                    hashes.add(hash(setting, line.strip()));
                } else {
                    verifiedPairs.put(digest(tenant.user(), line), tenant.name());
                }
            }
        }

        private static PasswordHash hash(String setting, String text) throws IOException {
            try {
                return PasswordHash.parse(text);
            } catch (IllegalArgumentException malformed) {
                throw new IOException(setting + " has no hash of a password; " + malformed.getMessage(), malformed);
            }
        }

        /// Returns whether a user of this name exists.
        boolean hasUser(String user) {
            return users.containsKey(user);
        }

        /// The tenant of a pair that is known to be right, or null.
        @Nullable
        String findVerified(String user, String password) {
            return verifiedPairs.get(digest(user, password));
        }

        /// The tenant of a pair that is right, or null. Slow, and as slow for users that there are not.
        @Nullable
        String verify(String user, String password) {
            User asked = users.get(user);
            if (asked == null || asked.hashes().isEmpty()) {
                decoyHash.matches(password);
                return null;
            }
            for (PasswordHash hash : asked.hashes()) {
                if (hash.matches(password)) {
                    verifiedPairs.put(digest(user, password), asked.tenant());
                    return asked.tenant();
                }
            }
            return null;
        }

        private ByteBuffer digest(String user, String password) {
            try {
                MessageDigest sha = MessageDigest.getInstance("SHA-256");
                sha.update(pepper);
                sha.update(PasswordHash.encodePassword(user));
                sha.update((byte) 0); // is in no user's name
                return ByteBuffer.wrap(sha.digest(PasswordHash.encodePassword(password)));
            } catch (NoSuchAlgorithmException missing) {
                throw new IllegalStateException("this JDK has no SHA-256", missing);
            }
        }
    }
}
