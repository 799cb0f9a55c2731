package io.kvcache.bench.disk;

import io.kvcache.tiers.device.BlockDevice;
import io.kvcache.tiers.device.FileDevice;
import io.kvcache.tiers.device.FileDeviceOptions;
import io.kvcache.tiers.device.FileDeviceOptions.IoBackendType;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;

/// Runs workloads through our block device, each in a thread of its own, which then owns it.
///
/// @param pool where the bytes come from and go to; large enough for the deepest queue of the largest pieces
/// @param buffers whether each request of the queue has one buffer, else all of the pool is used in turns
record DeviceIoRunner(MemorySegment pool, boolean buffers) {

    /// On the best path there is.
    TransferResult run(IoWorkload work) throws IOException {
        return inThread(() -> run(work, IoBackendType.AUTO));
    }

    /// While the kernel denies io_uring; where it cannot be made to, without asking it.
    TransferResult runWithoutUring(IoWorkload work) throws IOException {
        return inThread(() -> run(work, SeccompNoUring.denyForThread() ? IoBackendType.AUTO : IoBackendType.THREADS));
    }

    private TransferResult run(IoWorkload work, IoBackendType engine) throws IOException {
        FileDeviceOptions options = FileDeviceOptions.of(work.file(), work.fileBytes())
                .withDepth(work.depth())
                .withEngine(engine);
        try (BlockDevice device = FileDevice.open(options)) {
            device.register(pool);
            return DeviceLoadGenerator.run(
                    work, device, pool, buffers ? work.depth() : pool.byteSize() / work.pieceBytes());
        }
    }

    private static TransferResult inThread(Callable<TransferResult> task) throws IOException {
        FutureTask<TransferResult> future = new FutureTask<>(task);
        Thread.ofPlatform().name(ThreadCpuTimes.LOAD_THREAD).start(future);
        try {
            return future.get();
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
            throw new IOException("interrupted", stopped);
        } catch (ExecutionException failed) {
            if (failed.getCause() instanceof IOException cause) {
                throw cause;
            }
            throw new IllegalStateException("the device failed", failed.getCause());
        }
    }
}
