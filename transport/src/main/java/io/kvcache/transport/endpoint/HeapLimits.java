package io.kvcache.transport.endpoint;

/// How much of the heap clients may have an endpoint keep for them. What does not fit is refused; the
/// connection goes on.
///
/// @param chainBlocks of one chain that a client tells, 1 to 16,777,216
/// @param connectionBytes that all chains told over one connection take, 1 KiB and up
/// @param chainBytes that all chains of all connections take, and of requests that wait, 1 KiB and up
/// @param snapshots that are made or read at one time, 1 to 1,024
/// @param snapshotEntries that one of them may have, 1 and up
public record HeapLimits(int chainBlocks, long connectionBytes, long chainBytes, int snapshots, long snapshotEntries) {

    /// Sixteen million tokens in blocks of sixteen.
    private static final int DEFAULT_CHAIN_BLOCKS = 1 << 20;

    private static final int MAX_CHAIN_BLOCKS = 1 << 24;
    private static final long MIN_BYTES = 1 << 10;
    private static final int DEFAULT_SNAPSHOTS = 2;
    private static final int MAX_SNAPSHOTS = 1024;

    /// What an entry takes while a snapshot is made.
    private static final long ENTRY_BYTES = 250;

    public HeapLimits {
        check("chainBlocks", chainBlocks, 1, MAX_CHAIN_BLOCKS);
        check("connectionBytes", connectionBytes, MIN_BYTES, Long.MAX_VALUE);
        check("chainBytes", chainBytes, MIN_BYTES, Long.MAX_VALUE);
        check("snapshots", snapshots, 1, MAX_SNAPSHOTS);
        check("snapshotEntries", snapshotEntries, 1, Long.MAX_VALUE);
    }

    /// Shares of a heap: an eighth of it for chains, and a quarter of that for those of one connection; an
    /// eighth for each of two snapshots.
    ///
    /// @param bytes of the heap, 1 MiB and up
    public static HeapLimits of(long bytes) {
        return new HeapLimits(DEFAULT_CHAIN_BLOCKS, bytes / 32, bytes / 8, DEFAULT_SNAPSHOTS, bytes / 8 / ENTRY_BYTES);
    }

    /// @throws IllegalArgumentException that names the range when a number is outside of it
    static void check(String name, long value, long least, long most) {
        if (value < least || value > most) {
            throw new IllegalArgumentException(
                    "%s = %d is out of range; allowed: %d to %d".formatted(name, value, least, most));
        }
    }
}
