package io.kvcache.core.memory;

/// The unit of slot addresses: 4 KiB, the alignment that direct I/O and page protection ask for.
///
/// A page number is an `int`, so one store addresses up to 8 TiB of host memory.
public final class Pages {

    public static final int SHIFT = 12;
    public static final int BYTES = 1 << SHIFT;

    /// Largest span that page numbers can address.
    public static final long MAX_BYTES = (long) Integer.MAX_VALUE << SHIFT;

    private Pages() {}

    /// Byte offset at which a page begins.
    public static long offset(int page) {
        return (long) page << SHIFT;
    }

    /// `bytes` rounded up to whole pages.
    public static long roundUp(long bytes) {
        return (bytes + BYTES - 1) & -BYTES;
    }
}
