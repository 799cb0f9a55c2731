package io.kvcache.server.doctor;

import io.kvcache.tiers.device.BlockDevice;
import io.kvcache.tiers.device.FileDevice;
import io.kvcache.tiers.device.FileDeviceOptions;
import io.kvcache.tiers.device.IoOutcome;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.logging.Level;
import java.util.logging.Logger;

/// How fast a directory's disk is, roughly and within seconds, on the path that a disk tier takes there.
///
/// Files of 32 MiB are written one after the other, eight at most, until two seconds are over; then as much is read
/// from them, likewise. A disk with memory of its own may answer from that.
///
/// @param writeGigabytes a second, in pieces of 4 MiB, eight on their way
/// @param readGigabytes a second, likewise
/// @param path how the bytes travel there, in words
/// @param inMemory whether the directory lies in memory rather than on a disk
public record DiskSpeed(double writeGigabytes, double readGigabytes, String path, boolean inMemory) {

    /// Held here, as loggers without a reference forget their level.
    private static final Logger DEVICE = Logger.getLogger("io.kvcache.tiers.device");

    /// Requests on their way at a time: four keep a disk busy with pieces of this size, eight do surely.
    private static final int QUEUE_DEPTH = 8;

    private static final int PIECE_BYTES = 4 << 20;
    private static final long FILE_BYTES = (long) QUEUE_DEPTH * PIECE_BYTES;
    private static final int MAX_FILES = 8;
    private static final long RESERVED_BYTES = 1L << 30;
    private static final long MAX_NANOS = Duration.ofSeconds(2).toNanos();
    private static final long TIMEOUT_NANOS = Duration.ofSeconds(30).toNanos();

    /// Measures, and leaves nothing behind.
    ///
    /// @throws IOException that names the directory: it cannot be written to, or has too little room
    public static DiskSpeed measure(Path folder) throws IOException {
        if (!Files.isDirectory(folder) || !Files.isWritable(folder)) {
            throw new IOException(folder + " is not a directory that can be written to");
        }
        if (Files.getFileStore(folder).getUsableSpace() < MAX_FILES * FILE_BYTES + RESERVED_BYTES) {
            throw new IOException(folder + " has too little room: 1.3 GiB have to be free");
        }
        List<Path> files = new ArrayList<>();
        DEVICE.setLevel(Level.WARNING); // It would name its path for each file.
        Path own = Files.createTempDirectory(folder, "kvcache-doctor-");
        own.toFile().deleteOnExit(); // Last, as they go in reverse order.
        try (Arena arena = Arena.ofShared()) {
            MemorySegment memory = arena.allocate(FILE_BYTES, PIECE_BYTES);
            Throughput written = new Throughput();
            while (files.size() < MAX_FILES && written.nanos < MAX_NANOS) {
                Path file = own.resolve("file" + files.size());
                file.toFile().deleteOnExit();
                files.add(file);
                written.add(file, memory, true);
            }
            Throughput read = new Throughput();
            for (Path file : files) {
                if (read.nanos < MAX_NANOS) {
                    read.add(file, memory, false);
                }
            }
            boolean inMemory = Files.getFileStore(folder).type().equals("tmpfs");
            return new DiskSpeed(written.gigabytesPerSecond(), read.gigabytesPerSecond(), read.path, inMemory);
        } finally {
            for (Path file : files) {
                Files.deleteIfExists(file);
            }
            Files.deleteIfExists(own);
            DEVICE.setLevel(null);
        }
    }

    /// Returns whether the measurement bypassed the page cache.
    public boolean isDirect() {
        return path.contains("O_DIRECT");
    }

    /// The throughput over several files, one after the other.
    private static final class Throughput {

        private double bytes;
        private double nanos;
        private String path = "";
        private IoOutcome failure = IoOutcome.DONE;

        /// Moves all of a file, its pieces at once.
        void add(Path file, MemorySegment memory, boolean writes) throws IOException {
            FileDeviceOptions options = FileDeviceOptions.of(file, FILE_BYTES).withDepth(QUEUE_DEPTH);
            try (BlockDevice device = FileDevice.open(options)) {
                device.register(memory);
                long start = System.nanoTime();
                for (long offset = 0; offset < FILE_BYTES; offset += PIECE_BYTES) {
                    MemorySegment piece = memory.asSlice(offset, PIECE_BYTES);
                    boolean queued = writes ? device.write(piece, offset, offset) : device.read(piece, offset, offset);
                    assert queued : "a file has no more pieces than the queue is deep";
                }
                await(file, device);
                nanos += System.nanoTime() - start;
                bytes += FILE_BYTES;
                path = device.describe();
            }
        }

        private void await(Path file, BlockDevice device) throws IOException {
            while (device.inFlight() > 0) {
                int ended = device.await(this::completed, TIMEOUT_NANOS);
                if (ended == 0 || !failure.isDone()) {
                    throw new IOException(file + ": " + (ended == 0 ? "no answer within 30 s" : failure.cause()));
                }
            }
        }

        private void completed(long offset, IoOutcome outcome) {
            failure = failure.isDone() ? outcome : failure;
        }

        double gigabytesPerSecond() {
            return bytes / nanos;
        }
    }
}
