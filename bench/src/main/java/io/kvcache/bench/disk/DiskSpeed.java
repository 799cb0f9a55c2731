package io.kvcache.bench.disk;

import java.io.IOException;
import java.lang.foreign.Arena;
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
/// @param inMemory whether there is no disk below it
public record DiskSpeed(double writeGigabytes, double readGigabytes, String path, boolean inMemory) {

    /// Held here, as loggers that nobody holds forget their level.
    private static final Logger DEVICE = Logger.getLogger("io.kvcache.tiers.device");

    private static final int PIECE_BYTES = 4 << 20;
    private static final long FILE_BYTES = (long) DiskBench.DEPTH * PIECE_BYTES;
    private static final int FILES = 8;
    private static final long LONGEST_NANOS = Duration.ofSeconds(2).toNanos();

    /// Measures, and leaves nothing behind.
    ///
    /// @throws IOException that names the directory: it cannot be written to, or has too little room
    public static DiskSpeed measure(Path folder) throws IOException {
        if (!Files.isDirectory(folder) || !Files.isWritable(folder)) {
            throw new IOException(folder + " is not a directory that can be written to");
        }
        if (!TestFile.fits(folder, FILES * FILE_BYTES)) {
            throw new IOException(folder + " has too little room: 1.3 GiB have to be free");
        }
        List<TestFile> files = new ArrayList<>();
        DEVICE.setLevel(Level.WARNING); // It would name its path for each file.
        try (Arena arena = Arena.ofShared()) {
            DeviceMover mover = new DeviceMover(arena.allocate(FILE_BYTES, PIECE_BYTES), true);
            Sum written = new Sum();
            while (files.size() < FILES && written.nanos < LONGEST_NANOS) {
                TestFile file = TestFile.empty(folder, FILE_BYTES);
                files.add(file);
                written.add(mover.move(file.workload(FILE_BYTES, Pattern.REGION_WRITE, PIECE_BYTES)));
            }
            Sum read = new Sum();
            for (TestFile file : files) {
                if (read.nanos < LONGEST_NANOS) {
                    read.add(mover.move(file.workload(FILE_BYTES, Pattern.RANDOM_READ, PIECE_BYTES)));
                }
            }
            return new DiskSpeed(
                    written.gigabytesPerSecond(), read.gigabytesPerSecond(), read.path, TestFile.isInMemory(folder));
        } finally {
            for (TestFile file : files) {
                file.close();
            }
            DEVICE.setLevel(null);
        }
    }

    /// Whether the page cache is out of the way.
    public boolean direct() {
        return path.contains("O_DIRECT");
    }

    /// Several pieces of traffic, one after the other.
    private static final class Sum {

        private double bytes;
        private double nanos;
        private String path = "";

        void add(Traffic traffic) {
            bytes += traffic.bytes();
            nanos += traffic.seconds() * 1e9;
            path = traffic.path();
        }

        double gigabytesPerSecond() {
            return bytes / nanos;
        }
    }
}
