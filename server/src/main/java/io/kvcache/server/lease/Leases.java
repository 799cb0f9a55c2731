package io.kvcache.server.lease;

import io.kvcache.core.time.Clock;
import io.kvcache.server.keyspace.PinnedValue;
import java.security.SecureRandom;
import java.util.HexFormat;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;

/// Values that other processes read in place: each stays where it is until it is released or its time
/// is over, whether the client that took it lives or not.
///
/// **Bound.** At most so many bytes and [#MAX_LEASES] leases at one time; more are refused.
///
/// **Threads.** Any.
public final class Leases implements AutoCloseable {

    /// A client holds one for each chunk of a prompt.
    static final int MAX_LEASES = 1 << 16;

    private static final int ID_BYTES = 16;

    private final Clock clock;
    private final long maxBytes;
    private final Map<String, Lease> leases = new ConcurrentHashMap<>();
    private final AtomicLong bytes = new AtomicLong();
    private final LongAdder expired = new LongAdder();
    private final SecureRandom random = new SecureRandom();

    private record Lease(PinnedValue value, long bytes, long endNanos) {}

    /// @param maxBytes leased at one time
    public Leases(Clock clock, long maxBytes) {
        this.clock = clock;
        this.maxBytes = maxBytes;
    }

    /// Takes a value over and holds it.
    ///
    /// @return the lease's name, or null when too much is leased; the value is closed then
    @Nullable
    String grant(PinnedValue value, long forNanos) {
        long size = value.bytes();
        if (bytes.addAndGet(size) > maxBytes || leases.size() >= MAX_LEASES) {
            bytes.addAndGet(-size);
            value.close();
            return null;
        }
        value.stopSending();
        byte[] name = new byte[ID_BYTES];
        random.nextBytes(name);
        String id = HexFormat.of().formatHex(name);
        leases.put(id, new Lease(value, size, clock.nanos() + forNanos));
        return id;
    }

    /// Ends a lease; answers whether there was one.
    boolean release(String id) {
        Lease lease = leases.remove(id);
        if (lease != null) {
            bytes.addAndGet(-lease.bytes);
            lease.value.close();
        }
        return lease != null;
    }

    /// Ends those whose time is over.
    public void tick() {
        long now = clock.nanos();
        leases.forEach((id, lease) -> {
            if (now - lease.endNanos >= 0 && release(id)) {
                expired.increment();
            }
        });
    }

    /// Leases there are now.
    public int count() {
        return leases.size();
    }

    /// Bytes leased now.
    public long heldBytes() {
        return bytes.get();
    }

    /// Leases that were not released in time.
    public long expiredCount() {
        return expired.sum();
    }

    /// Ends all.
    @Override
    public void close() {
        leases.keySet().forEach(this::release);
    }
}
