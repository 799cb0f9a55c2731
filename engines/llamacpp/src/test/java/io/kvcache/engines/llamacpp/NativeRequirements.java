package io.kvcache.engines.llamacpp;

import java.lang.foreign.Arena;
import java.lang.foreign.SymbolLookup;
import org.junit.jupiter.api.Assumptions;

/// What the library in the jar of `de.kherud:llama` needs of the machine; Debian's gcc brings it.
public final class NativeRequirements {

    private NativeRequirements() {}

    /// Skips a test, with the reason, where it is not.
    @SuppressWarnings("restricted") // Looks whether it is there.
    public static void assume() {
        try (Arena arena = Arena.ofConfined()) {
            SymbolLookup.libraryLookup("libgomp.so.1", arena);
        } catch (IllegalArgumentException missing) {
            Assumptions.abort("llama.cpp's library needs libgomp.so.1 (Debian: libgomp1), which is not installed");
        }
    }
}
