package io.kvcache.server.keyspace;

import io.kvcache.core.check.BlockContent;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.policy.EvictionPolicyFactory;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.server.keyspace.PinnedValue.TensorMetadata;
import io.kvcache.tiers.TieredKvCache;
import java.io.ByteArrayOutputStream;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/// A keyspace over a real store, with a clock of the test.
public final class TestKeyspace implements AutoCloseable {

    private final ManualClock time;
    private final TieredKvCache cache;
    private final Keyspace keyspace;
    private final @Nullable HashSlotOwnership slotOwnership;

    public TestKeyspace(long hostBytes) {
        this(hostBytes, KeyspaceOptions.defaults(hostBytes));
    }

    TestKeyspace(long hostBytes, KeyspaceOptions options) {
        this(hostBytes, PolicyKind.LRU, options);
    }

    public TestKeyspace(long hostBytes, EvictionPolicyFactory policy) {
        this(hostBytes, policy, KeyspaceOptions.defaults(hostBytes));
    }

    private TestKeyspace(long hostBytes, EvictionPolicyFactory policy, KeyspaceOptions options) {
        this(hostBytes, policy, options, new ManualClock());
    }

    private TestKeyspace(long hostBytes, EvictionPolicyFactory policy, KeyspaceOptions options, ManualClock time) {
        this.time = time;
        slotOwnership = options.slotOwnership();
        cache = TieredKvCache.builder()
                .hostBytes(hostBytes)
                .policy(policy)
                .prefaultInBackground(false)
                .failOnLeak(true)
                .closeWait(Duration.ZERO)
                .build();
        keyspace = new Keyspace(cache, Namespace.objects("objects", "default"), time, time, options);
    }

    /// A server of a cluster.
    ///
    /// @param node its name
    public static TestKeyspace inCluster(String node, SettableViews views) {
        ManualClock time = new ManualClock();
        HashSlotOwnership ownership = new HashSlotOwnership(node, views, time, time);
        KeyspaceOptions usual = KeyspaceOptions.defaults(64L << 20);
        KeyspaceOptions fenced = new KeyspaceOptions(
                usual.existsPin(),
                usual.existsPinBytes(),
                usual.fetchTimeout(),
                usual.quotaBytes(),
                usual.keyspaceLimits(),
                usual.prefetch(),
                usual.recompute(),
                ownership);
        return new TestKeyspace(64L << 20, PolicyKind.LRU, fenced, time);
    }

    public static TestKeyspace small() {
        return new TestKeyspace(64L << 20);
    }

    public Keyspace keyspace() {
        return keyspace;
    }

    public TieredKvCache cache() {
        return cache;
    }

    /// The owners of slots, or null outside of a cluster.
    public @Nullable HashSlotOwnership slotOwnership() {
        return slotOwnership;
    }

    public ManualClock time() {
        return time;
    }

    /// Ends promises, so that nothing is held.
    @Override
    public void close() {
        time.advance(Duration.ofMinutes(2));
        keyspace.tick();
        cache.validate();
        cache.close();
    }

    public static byte[] key(String text) {
        return text.getBytes(StandardCharsets.ISO_8859_1);
    }

    /// Content that is a function of its seed.
    public static byte[] content(long seed, int bytes) {
        byte[] content = new byte[bytes];
        BlockContent.of(0, seed).fill(MemorySegment.ofArray(content));
        return content;
    }

    public PendingPut.State put(String key, byte[] value) {
        return put(key, value, 0);
    }

    public PendingPut.State put(String key, byte[] value, long expiresAtMillis) {
        try (PendingPut put = keyspace.put(key(key), value.length)) {
            if (put.state() == PendingPut.State.WRITING) {
                fill(put, value);
                put.commit(expiresAtMillis, TensorMetadata.NONE, PendingPut.Condition.ALWAYS);
            }
            return put.state();
        }
    }

    static void fill(PendingPut put, byte[] value) {
        ByteBuffer source = ByteBuffer.wrap(value);
        while (put.remainingBytes() > 0) {
            ByteBuffer room = put.writableBuffer();
            int length = Math.min(room.remaining(), source.remaining());
            room.put(source.slice(source.position(), length));
            source.position(source.position() + length);
        }
    }

    public byte @Nullable [] get(String key) {
        try (PinnedValue value = keyspace.get(key(key))) {
            return value == null ? null : bytes(value);
        }
    }

    static byte[] bytes(PinnedValue value) {
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        value.visit(
                0,
                value.bytes(),
                (memory, from, bytes) ->
                        all.writeBytes(memory.asSlice(from, bytes).toArray(ValueLayout.JAVA_BYTE)));
        return all.toByteArray();
    }
}
