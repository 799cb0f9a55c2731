package io.kvcache.core.spi;

/// Reserves host memory. Tiers maps it from the operating system; tests take it from an arena.
@FunctionalInterface
public interface HostMemorySource {

    /// Reserves `bytes` of zeroed memory.
    ///
    /// @param purpose one word that names the use (`slots`, `records`), for error messages and file names
    /// @throws IllegalStateException when the operating system refuses; names the purpose, the size and the cause
    HostMemory reserve(String purpose, long bytes);
}
