package io.kvcache.core.contract;

/// Settings of the cache that a contract test asks for.
///
/// @param hostBytes host memory for blocks and objects, in whole slabs
/// @param eventCapacity events kept for replay, a power of two
/// @param strict whether closing must throw while tables are open
/// @param manualTime whether the cache lives by a clock that only [CacheUnderTest#advance] moves, where it
///     can
public record CacheSetup(long hostBytes, int eventCapacity, boolean strict, boolean manualTime) {

    /// Small enough to fill, large enough for a class to take a slab from another.
    public static final CacheSetup SMALL = new CacheSetup(64L << 20, 1 << 16, false, false);

    /// The same with other memory.
    public CacheSetup withHostBytes(long bytes) {
        return new CacheSetup(bytes, eventCapacity, strict, manualTime);
    }

    /// The same with another number of events.
    public CacheSetup withEvents(int events) {
        return new CacheSetup(hostBytes, events, strict, manualTime);
    }

    /// The same, strict.
    public CacheSetup withStrict() {
        return new CacheSetup(hostBytes, eventCapacity, true, manualTime);
    }

    /// The same by a clock that the test moves.
    public CacheSetup withManualTime() {
        return new CacheSetup(hostBytes, eventCapacity, strict, true);
    }
}
