package io.kvcache.tiers.device;

import io.kvcache.tiers.os.Libc;
import io.kvcache.tiers.os.LibcFunction;
import java.lang.foreign.Arena;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/// The blocking calls that carry out requests, for one thread.
final class PositionalIo {

    private final DeviceFile file;
    private final MemorySegment errno;
    private final MethodHandle pread;
    private final MethodHandle pwrite;

    /// @param arena outlives this object
    PositionalIo(DeviceFile file, Arena arena) {
        this.file = file;
        this.errno = arena.allocate(Linker.Option.captureStateLayout());
        this.pread = file.libc().handle(LibcFunction.PREAD);
        this.pwrite = file.libc().handle(LibcFunction.PWRITE);
    }

    /// Carries out what remains of a request, or a part.
    ///
    /// @return bytes moved, or a negated errno
    long execute(IoRequest request) {
        return switch (request.operation()) {
            case READ -> transfer(pread, request);
            case WRITE -> transfer(pwrite, request);
            case SYNC -> file.libc().call(LibcFunction.FDATASYNC, file.descriptor());
            case DISCARD ->
                file.libc()
                        .call(
                                LibcFunction.FALLOCATE,
                                file.descriptor(),
                                DeviceFile.PUNCH_HOLE,
                                request.offset(),
                                request.remaining());
        };
    }

    private long transfer(MethodHandle call, IoRequest request) {
        try {
            long moved = (long) call.invokeExact(
                    errno, file.descriptor(), request.address(), request.remaining(), request.offset());
            return Libc.result(errno, moved);
        } catch (Throwable impossible) {
            throw new AssertionError("a C function threw", impossible);
        }
    }
}
