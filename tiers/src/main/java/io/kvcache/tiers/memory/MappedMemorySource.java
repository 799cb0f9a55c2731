package io.kvcache.tiers.memory;

import io.kvcache.core.spi.HostMemorySource;
import io.kvcache.tiers.memory.MappedMemory.SharedMemoryFile;
import io.kvcache.tiers.options.MemoryOptions;
import io.kvcache.tiers.options.MemoryOptions.Backing;
import io.kvcache.tiers.options.MemoryOptions.HugePages;
import io.kvcache.tiers.os.Errno;
import io.kvcache.tiers.os.Libc;
import io.kvcache.tiers.os.Libc.LibcFunction;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;

/// Reserves host memory from the operating system.
///
/// Mapping takes microseconds, for files under `/dev/shm` some 0.3 s a GiB; the pages of the other two are
/// backed when first touched, see [PagePrefaulter]. Where the platform has no `mmap` that we know (everything
/// but Linux), anonymous memory comes from the JVM instead, zeroed at once, and a log line says so.
///
/// **Ownership.** The caller closes each memory. The source itself holds nothing.
///
/// **Threads.** Any thread may reserve.
public final class MappedMemorySource implements HostMemorySource {

    private static final Logger LOG = System.getLogger(MappedMemorySource.class.getName());

    private static final int PROT_READ_WRITE = 3;
    private static final int MAP_SHARED = 1;

    /// MAP_PRIVATE | MAP_ANONYMOUS, without MAP_NORESERVE: every page will be used, so what cannot be had is better
    /// refused now than answered by the out-of-memory killer later.
    private static final int MAP_PRIVATE_ANONYMOUS = 0x22;

    private static final int PAGE_BYTES = 4096;

    private final MemoryOptions options;
    private final Libc libc;
    private final HugePageAdvice advice;

    /// @throws IllegalStateException when the JVM runs with `--illegal-native-access=deny` and without
    ///     `--enable-native-access=ALL-UNNAMED`; the message names the flag
    public MappedMemorySource(MemoryOptions options) {
        this(options, Libc.system());
    }

    MappedMemorySource(MemoryOptions options, Libc libc) {
        this(options, libc, new HugePageAdvice(libc, HugePageAdvice.KERNEL_SETTINGS));
    }

    MappedMemorySource(MemoryOptions options, Libc libc, HugePageAdvice advice) {
        this.options = options;
        this.libc = libc;
        this.advice = advice;
        if (allocatesFromJvm()) {
            LOG.log(Level.INFO, "No mmap on this platform: host memory comes from the JVM, without huge pages");
        }
    }

    @Override
    public MappedMemory reserve(String purpose, long bytes) {
        MappingRequest wanted = new MappingRequest(purpose, bytes);
        return switch (options.backing()) {
            case ANONYMOUS -> allocatesFromJvm() ? allocateFromJvm(wanted) : map(wanted, null);
            case MEMFD -> mapFile(wanted, new MemfdFactory(libc).create(wanted));
            case SHM_FILE -> mapFile(wanted, new ShmFileFactory(libc, options.shmDirectory()).create(wanted));
        };
    }

    private boolean allocatesFromJvm() {
        return options.backing() == Backing.ANONYMOUS && !libc.supports(LibcFunction.MMAP);
    }

    private static MappedMemory allocateFromJvm(MappingRequest wanted) {
        Arena arena = Arena.ofShared();
        try {
            MemorySegment segment = arena.allocate(wanted.bytes(), PAGE_BYTES);
            return new MappedMemory(arena, segment, "allocated by the JVM", null);
        } catch (OutOfMemoryError refused) {
            arena.close();
            throw wanted.failed(refused + "; raise -XX:MaxDirectMemorySize");
        }
    }

    MappedMemory mapFile(MappingRequest wanted, SharedMemoryFile file) {
        try {
            return map(wanted, file);
        } catch (RuntimeException failure) {
            file.release().run();
            throw failure;
        }
    }

    private MappedMemory map(MappingRequest wanted, @Nullable SharedMemoryFile file) {
        int flags = file == null ? MAP_PRIVATE_ANONYMOUS : MAP_SHARED;
        int descriptor = file == null ? -1 : file.descriptor();
        long address = libc.call(
                LibcFunction.MMAP, MemorySegment.NULL, wanted.bytes(), PROT_READ_WRITE, flags, descriptor, 0L);
        if (address < 0) {
            throw wanted.callFailed("mmap", address);
        }
        Arena arena = Arena.ofShared();
        try {
            MemorySegment segment = toSegment(address, wanted.bytes(), arena);
            String pages = advice.advise(wanted, segment, options);
            String name = file == null ? "anonymous" : file.description();
            return new MappedMemory(arena, segment, name + ", " + pages, file);
        } catch (RuntimeException failure) {
            arena.close();
            throw failure;
        }
    }

    /// The length is the one that mmap has just mapped at this address.
    @SuppressWarnings("restricted") // Giving a mapping its length and its end of life; nothing else here can.
    private MemorySegment toSegment(long address, long bytes, Arena arena) {
        return MemorySegment.ofAddress(address).reinterpret(bytes, arena, this::unmap);
    }

    private void unmap(MemorySegment mapping) {
        long result = libc.call(LibcFunction.MUNMAP, mapping, mapping.byteSize());
        if (result < 0) {
            LOG.log(Level.WARNING, "munmap of {0} gave {1}", mapping, Errno.explain(result));
        }
    }

    /// Creates files in memory that have no name and a fixed size.
    ///
    /// The seals matter to readers in other processes: a file that shrank under their mapping would kill them by
    /// SIGBUS.
    private record MemfdFactory(Libc libc) {

        private static final int MFD_CLOEXEC = 1;
        private static final int MFD_ALLOW_SEALING = 2;
        private static final int MFD_NOEXEC_SEAL = 8;
        private static final int F_ADD_SEALS = 1033;
        private static final int F_SEAL_SHRINK = 2;
        private static final int F_SEAL_GROW = 4;

        SharedMemoryFile create(MappingRequest wanted) {
            int descriptor = open(wanted);
            Runnable release = () -> libc.call(LibcFunction.CLOSE, descriptor);
            long sized = libc.call(LibcFunction.FTRUNCATE, descriptor, wanted.bytes());
            long sealed = sized < 0
                    ? sized
                    : libc.call(LibcFunction.FCNTL, descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
            if (sealed < 0) {
                release.run();
                throw wanted.callFailed(sized < 0 ? "ftruncate of a memfd" : "sealing a memfd", sealed);
            }
            Path path =
                    Path.of("/proc/%s/fd/%s".formatted(ProcessHandle.current().pid(), descriptor));
            return new SharedMemoryFile(descriptor, path, "memfd %s".formatted(descriptor), release);
        }

        /// Kernels from 6.3 want to be told that the file is not to be executed, and can be set to refuse
        /// otherwise; older ones do not know the flag.
        private int open(MappingRequest wanted) {
            String name = "kvcache-" + wanted.purpose();
            int flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
            long descriptor = libc.callWithString(LibcFunction.MEMFD_CREATE, name, flags | MFD_NOEXEC_SEAL);
            if (Errno.EINVAL.isResult(descriptor)) {
                descriptor = libc.callWithString(LibcFunction.MEMFD_CREATE, name, flags);
            }
            if (descriptor < 0) {
                throw wanted.callFailed("memfd_create", descriptor);
            }
            return (int) descriptor;
        }
    }

    /// Asks the kernel for huge pages, or for none.
    ///
    /// `madvise` accepts the advice even where the administrator switched huge pages off, so the switch is read
    /// too:
    /// `enabled` for anonymous memory, `shmem_enabled` for everything that is shared.
    ///
    /// @param settings the kernel's folder of switches
    record HugePageAdvice(Libc libc, Path settings) {

        static final Path KERNEL_SETTINGS = Path.of("/sys/kernel/mm/transparent_hugepage");

        private static final int MADV_HUGEPAGE = 14;
        private static final int MADV_NOHUGEPAGE = 15;

        /// Advises for a span that was not touched yet, and says in words what came of it.
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
            Path file = settings.resolve(
                    options.backing() == MemoryOptions.Backing.ANONYMOUS ? "enabled" : "shmem_enabled");
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
}
