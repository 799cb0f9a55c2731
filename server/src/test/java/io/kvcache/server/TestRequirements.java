package io.kvcache.server;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.kvcache.server.net.NettyTransport.TransportKind;
import io.netty.channel.epoll.Epoll;
import io.netty.channel.uring.IoUring;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/// Resources that some machines lack. A test that needs one says so and is skipped where it is missing.
final class TestRequirements {

    private TestRequirements() {}

    /// A way to drive sockets that the kernel, or what stands around a container, may refuse.
    static void assumeSockets(TransportKind kind) {
        if (kind == TransportKind.IO_URING) {
            assumeTrue(IoUring.isAvailable(), () -> "no io_uring here: " + IoUring.unavailabilityCause());
        } else if (kind == TransportKind.EPOLL) {
            assumeTrue(Epoll.isAvailable(), () -> "no epoll here: " + Epoll.unavailabilityCause());
        }
    }

    /// Shared memory, of which a container has 64 MiB by default.
    static void assumeSharedMemory(long bytes) throws IOException {
        Path place = Path.of("/dev/shm");
        assumeTrue(Files.isDirectory(place), "no /dev/shm here");
        long left = Files.getFileStore(place).getUsableSpace();
        assumeTrue(left >= bytes, () -> "/dev/shm has " + left + " bytes left; this takes " + bytes);
    }
}
