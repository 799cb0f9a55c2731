package io.kvcache.tiers.memory;

import io.kvcache.tiers.os.Errno;
import io.kvcache.tiers.os.Libc;
import io.kvcache.tiers.os.LibcFunction;
import java.nio.file.Path;

/// Creates files in memory that have no name and a fixed size.
///
/// The seals matter to readers in other processes: a file that shrank under their mapping would kill them by
/// SIGBUS.
record MemfdFactory(Libc libc) {

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
        long sealed =
                sized < 0 ? sized : libc.call(LibcFunction.FCNTL, descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
        if (sealed < 0) {
            release.run();
            throw wanted.callFailed(sized < 0 ? "ftruncate of a memfd" : "sealing a memfd", sealed);
        }
        Path path = Path.of("/proc/%d/fd/%d".formatted(ProcessHandle.current().pid(), descriptor));
        return new SharedMemoryFile(descriptor, path, "memfd %d".formatted(descriptor), release);
    }

    /// Kernels from 6.3 want to be told that the file is not to be executed, and can be set to refuse otherwise;
    /// older ones do not know the flag.
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
