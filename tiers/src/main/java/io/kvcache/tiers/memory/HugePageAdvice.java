package io.kvcache.tiers.memory;

import io.kvcache.tiers.memory.MemoryOptions.HugePages;
import io.kvcache.tiers.os.Errno;
import io.kvcache.tiers.os.Libc;
import io.kvcache.tiers.os.LibcFunction;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;

/// Asks the kernel for huge pages, or for none.
///
/// `madvise` accepts the advice even where the administrator switched huge pages off, so the switch is read too:
/// `enabled` for anonymous memory, `shmem_enabled` for everything that is shared.
///
/// @param settings the kernel's folder of switches
record HugePageAdvice(Libc libc, Path settings) {

    static final Path KERNEL_SETTINGS = Path.of("/sys/kernel/mm/transparent_hugepage");

    private static final int MADV_HUGEPAGE = 14;
    private static final int MADV_NOHUGEPAGE = 15;

    /// Advises for a span that nobody has touched yet, and says in words what came of it.
    ///
    /// @throws IllegalStateException when huge pages are a must and are not to be had
    String advise(MappingRequest wanted, MemorySegment span, MemoryOptions options) {
        return switch (options.hugePages()) {
            case OFF -> {
                libc.call(LibcFunction.MADVISE, span, span.byteSize(), MADV_NOHUGEPAGE);
                yield "small pages";
            }
            case AUTO, ON -> {
                String obstacle = requestAdvice(span, options);
                if (!obstacle.isEmpty() && options.hugePages() == HugePages.ON) {
                    throw wanted.failed("huge pages are not to be had: " + obstacle);
                }
                yield obstacle.isEmpty() ? "huge pages advised" : "small pages, as " + obstacle;
            }
        };
    }

    /// Empty when the kernel agreed, otherwise why not.
    private String requestAdvice(MemorySegment span, MemoryOptions options) {
        Path file =
                settings.resolve(options.backing() == MemoryOptions.Backing.ANONYMOUS ? "enabled" : "shmem_enabled");
        try {
            String setting = Files.readString(file);
            if (setting.contains("[never]") || setting.contains("[deny]")) {
                return "%s says %s".formatted(file, setting.strip());
            }
        } catch (IOException absent) {
            return "this kernel has no " + file;
        }
        long result = libc.call(LibcFunction.MADVISE, span, span.byteSize(), MADV_HUGEPAGE);
        return result == 0 ? "" : "madvise gave " + Errno.explain(result);
    }
}
