package io.kvcache.server.config;

import io.kvcache.core.memory.SlabPool;
import io.kvcache.server.keyspace.Keyspace;

/// The limits on keys, values and bytes in transit.
///
/// @param keyBytes longest key
/// @param valueBytes largest value
/// @param inFlightBytes of all values that are on their way in at one time; beyond that a value is refused, as it
///     is when there is no room
/// @param sendingBytes of all values and blocks that are on their way out at one time; beyond that a read finds
/// nothing, or over HTTP is answered 503
public record RequestLimits(long keyBytes, long valueBytes, long inFlightBytes, long sendingBytes) {

    public RequestLimits {
        validate("limits.key_bytes", keyBytes, Keyspace.MAX_KEY_BYTES);
        validate("limits.value_bytes", valueBytes, Keyspace.MAX_VALUE_BYTES);
        validate("limits.in_flight", inFlightBytes, Long.MAX_VALUE);
        validate("limits.sending", sendingBytes, Long.MAX_VALUE);
    }

    private static void validate(String name, long value, long most) {
        if (value < 1 || value > most) {
            throw new IllegalArgumentException(name + " is " + value + "; it takes 1 to " + most);
        }
    }

    /// All that the store takes, and half of host memory on its way in each direction.
    public static RequestLimits defaults(long hostBytes) {
        return new RequestLimits(Keyspace.MAX_KEY_BYTES, maxValueBytes(hostBytes), hostBytes / 2, hostBytes / 2);
    }

    /// Reads `limits` of requests.
    ///
    /// @param hostBytes of the server's host memory, which must hold the largest value
    static RequestLimits read(Settings from, long hostBytes) {
        RequestLimits usual = defaults(hostBytes);
        return from.getValid(
                usual,
                () -> new RequestLimits(
                                from.bytes("limits.key_bytes", usual.keyBytes),
                                from.bytes("limits.value_bytes", usual.valueBytes),
                                from.bytes("limits.in_flight", usual.inFlightBytes),
                                from.bytes("limits.sending", usual.sendingBytes))
                        .limitedTo(hostBytes));
    }

    /// Largest value that host memory holds beside what is smaller: all slabs but one, and no more than an object
    /// has.
    static long maxValueBytes(long hostBytes) {
        long most = SlabPool.wholeSlabs(hostBytes) - SlabPool.slabBytes(hostBytes);
        return Math.clamp(most, 1, Keyspace.MAX_VALUE_BYTES);
    }

    /// These limits in a server of so much host memory.
    ///
    /// @throws IllegalArgumentException when it cannot hold the largest value
    RequestLimits limitedTo(long hostBytes) {
        long most = maxValueBytes(hostBytes);
        if (valueBytes > most) {
            throw new IllegalArgumentException("limits.value_bytes is " + valueBytes + "; it takes 1 to " + most
                    + ", all but " + (SlabPool.slabBytes(hostBytes) >> 20) + " MiB of memory.host_bytes, which is "
                    + hostBytes);
        }
        return this;
    }
}
