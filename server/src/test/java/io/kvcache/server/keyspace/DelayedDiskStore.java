package io.kvcache.server.keyspace;

import io.kvcache.core.LocalKvCache;
import io.kvcache.core.ObjectView;
import io.kvcache.core.identity.Namespace;
import io.kvcache.server.keyspace.KeyspaceOptions.KeyspaceLimits;
import io.kvcache.server.keyspace.PinnedValue.TensorMetadata;
import io.kvcache.tiers.TieredKvCache;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/// A keyspace over a real store that says of all its values that they are on disk, and brings each when the test says
/// so.
public final class DelayedDiskStore implements AutoCloseable {

    @SuppressWarnings("ArrayRecordComponent") // never compared
    private record PendingFetch(
            Namespace namespace, byte[] key, long withinNanos, CompletableFuture<@Nullable ObjectView> coming) {}

    private final ManualClock time = new ManualClock();
    private final TieredKvCache real = TieredKvCache.builder()
            .hostBytes(64L << 20)
            .prefaultInBackground(false)
            .failOnLeak(true)
            .closeWait(Duration.ZERO)
            .build();
    private final Deque<PendingFetch> wanted = new ArrayDeque<>();
    private final LocalKvCache away = (LocalKvCache) Proxy.newProxyInstance(
            LocalKvCache.class.getClassLoader(), new Class<?>[] {LocalKvCache.class}, (self, method, arguments) -> {
                Object[] given = arguments == null ? new Object[0] : arguments;
                return switch (method.getName()) {
                    case "getObject", "holdObject" -> null;
                    case "fetchObject" ->
                        fetch((Namespace) given[0], (byte[]) given[1], ((Duration) given[2]).toNanos());
                    default -> ask(method, given);
                };
            });
    private Keyspace keyspace = open(KeyspaceLimits.unlimited());

    private Keyspace open(KeyspaceLimits keyspaceLimits) {
        return new Keyspace(
                away,
                Namespace.objects("objects", "default"),
                time,
                time,
                new KeyspaceOptions(Duration.ofSeconds(2), 1 << 20, Duration.ofSeconds(5), 0, keyspaceLimits));
    }

    private CompletableFuture<@Nullable ObjectView> fetch(Namespace namespace, byte[] key, long nanos) {
        PendingFetch one = new PendingFetch(namespace, key, nanos, new CompletableFuture<>());
        wanted.add(one);
        return one.coming();
    }

    private @Nullable Object ask(Method method, Object... arguments) throws Throwable {
        try {
            return method.invoke(real, arguments);
        } catch (InvocationTargetException failed) {
            throw Objects.requireNonNull(failed.getCause());
        }
    }

    public Keyspace keyspace() {
        return keyspace;
    }

    public LocalKvCache cache() {
        return away;
    }

    public ManualClock time() {
        return time;
    }

    /// Forgets all but what the store has, as a restart does.
    public void restart() {
        restart(KeyspaceLimits.unlimited());
    }

    public void restart(KeyspaceLimits keyspaceLimits) {
        keyspace = open(keyspaceLimits);
    }

    /// Values that are held.
    public long held() {
        return real.stats().openTables();
    }

    public void put(String key, String value) {
        put(key, value, 0);
    }

    public void put(String key, String value, long expiresAtMillis) {
        byte[] bytes = TestKeyspace.key(value);
        try (PendingPut put = keyspace.put(TestKeyspace.key(key), bytes.length)) {
            TestKeyspace.fill(put, bytes);
            put.commit(expiresAtMillis, TensorMetadata.NONE, PendingPut.Condition.ALWAYS);
        }
    }

    /// How long the value may take that was asked for first.
    public Duration fetchTimeout() {
        return Duration.ofNanos(wanted.element().withinNanos());
    }

    /// The store, which has no file that others could map.
    public TieredKvCache real() {
        return real;
    }

    /// Brings the value that was asked for first.
    public void completeFetch() {
        PendingFetch first = wanted.remove();
        first.coming().complete(real.getObject(first.namespace(), first.key()));
    }

    /// Ends the time of the value that was asked for first.
    public void timeOutFetch() {
        wanted.remove().coming().complete(null);
    }

    @Override
    public void close() {
        real.close();
    }
}
