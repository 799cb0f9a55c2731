package io.kvcache.bench.disk;

import io.kvcache.bench.disk.DiskRun.AccessPattern;
import io.kvcache.bench.disk.DiskRun.IoWorkload;
import io.kvcache.bench.disk.DiskRun.StorageMedium;
import io.kvcache.bench.disk.DiskRun.TransferResult;
import io.kvcache.tiers.device.FileDevice;
import io.kvcache.tiers.memory.MappedMemory;
import io.kvcache.tiers.memory.MappedMemorySource;
import io.kvcache.tiers.memory.MemoryOptions;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import java.util.Random;
import java.util.logging.Level;
import java.util.logging.Logger;

/// The files and the memory that trials use.
///
/// **Ownership.** Closing it removes the files.
public final class DiskBenchFixture implements AutoCloseable {

    /// Requests on their way at a time: four keep a disk busy with pieces of this size, eight do surely.
    public static final int DEPTH = 8;

    /// The largest piece of a trial.
    private static final int MAX_PIECE_BYTES = 4 << 20;

    private static final int PAGE_BYTES = 4096;

    private final DiskBenchDirs places;
    private final DiskRunLength effort;
    private final MappedMemory memory;
    private final DeviceIoRunner mover;
    private final DeviceIoRunner slotMover;
    private final Map<StorageMedium, TestFile> files = new EnumMap<>(StorageMedium.class);

    private final Map<StoreKey, StoreLoadRunner> stores = new HashMap<>();

    private record StoreKey(StorageMedium place, int blockBytes) {}

    /// The device says what path it takes at every opening, which would be once a trial; the report says it.
    private final Logger deviceLog = Logger.getLogger(FileDevice.class.getPackageName());

    private DiskBenchFixture(DiskBenchDirs places, DiskRunLength effort) {
        this.places = places;
        this.effort = effort;
        this.memory =
                new MappedMemorySource(MemoryOptions.defaults()).reserve("bench-disk", StoreLoadRunner.HOST_BYTES);
        this.mover = new DeviceIoRunner(memory.segment().asSlice(0, (long) DEPTH * MAX_PIECE_BYTES), true);
        this.slotMover = new DeviceIoRunner(memory.segment(), false);
        byte[] page = new byte[PAGE_BYTES];
        new Random(AccessPattern.SEED).nextBytes(page);
        for (long at = 0; at < memory.segment().byteSize(); at += PAGE_BYTES) {
            MemorySegment.copy(MemorySegment.ofArray(page), 0, memory.segment(), at, PAGE_BYTES);
        }
        deviceLog.setLevel(Level.SEVERE);
    }

    /// Makes a file in each place, and reads it once to warm up.
    ///
    /// @param places folders
    /// @throws IOException when a file cannot be made; then none is left
    public static DiskBenchFixture open(DiskBenchDirs places, DiskRunLength effort) throws IOException {
        DiskBenchFixture bench = new DiskBenchFixture(places, effort);
        try {
            for (Map.Entry<StorageMedium, Path> place : places.folders().entrySet()) {
                TestFile file = TestFile.create(place.getValue(), DiskBenchDirs.FILE_BYTES, bench.mover);
                bench.files.put(place.getKey(), file);
                bench.mover.run(file.workload(DiskBenchDirs.FILE_BYTES, AccessPattern.RANDOM_READ, 1 << 20));
            }
            return bench;
        } catch (IOException | RuntimeException failure) {
            bench.close();
            throw failure;
        }
    }

    /// Runs a trial.
    public TransferResult run(DiskRun diskRun) throws IOException {
        TestFile file = files.get(diskRun.place());
        if (file == null) {
            throw new IllegalArgumentException("there is no file for " + diskRun.describe());
        }
        IoWorkload work = file.workload(
                effort.bytes(diskRun.place(), diskRun.pieceBytes()), diskRun.pattern(), diskRun.pieceBytes());
        return switch (diskRun.mover()) {
            case DEVICE -> mover.run(work);
            case DEVICE_INTO_SLOTS -> slotMover.run(work);
            case DEVICE_WITHOUT_URING -> mover.runWithoutUring(work);
            case STORE -> store(diskRun).acquireBytes(effort.bytes(diskRun.place(), diskRun.pieceBytes()));
            case FIO_URING -> FioRunner.runUring(work);
            case FIO_PSYNC -> FioRunner.runThreads(work);
        };
    }

    /// Filled by the first trial that needs it.
    private StoreLoadRunner store(DiskRun diskRun) throws IOException {
        StoreKey key = new StoreKey(diskRun.place(), diskRun.pieceBytes());
        StoreLoadRunner store = stores.get(key);
        if (store == null) {
            store = StoreLoadRunner.open(
                    Objects.requireNonNull(places.folders().get(diskRun.place())), diskRun.pieceBytes());
            stores.put(key, store);
        }
        return store;
    }

    @Override
    public void close() throws IOException {
        deviceLog.setLevel(null);
        try {
            for (StoreLoadRunner store : stores.values()) {
                store.close();
            }
            for (TestFile file : files.values()) {
                file.close();
            }
        } finally {
            memory.close();
        }
    }

    /// How long the disk suite takes its time.
    ///
    /// @param memoryRounds times that each trial in memory is run
    /// @param diskRounds times that each trial on the disk is run, at most `memoryRounds`
    /// @param memoryBytes moved by a trial in memory
    /// @param diskBytes moved by a trial on the disk
    public record DiskRunLength(int memoryRounds, int diskRounds, long memoryBytes, long diskBytes) {

        private static final int SMALL_PIECE_BYTES = 256 << 10;

        /// Enough for figures that go into a document. The CPU of a gigabyte is a few milliseconds, of which fio
        /// counts whole ones, hence four.
        public static final DiskRunLength FULL = new DiskRunLength(15, 5, 4L << 30, 4L << 30);

        /// Enough to see that something has gone wrong.
        public static final DiskRunLength QUICK = new DiskRunLength(1, 1, 1L << 30, 1L << 28);

        /// How often a trial there is run.
        public int rounds(StorageMedium storageMedium) {
            return storageMedium == StorageMedium.MEMORY ? memoryRounds : diskRounds;
        }

        /// What a trial moves: of small pieces less, as their number costs the time.
        long bytes(StorageMedium storageMedium, int pieceBytes) {
            long bytes = storageMedium == StorageMedium.MEMORY ? memoryBytes : diskBytes;
            return pieceBytes < SMALL_PIECE_BYTES ? bytes / (SMALL_PIECE_BYTES / pieceBytes) : bytes;
        }
    }

    /// A file that trials read and write, in a folder of its own. All of it was written once.
    ///
    /// **Ownership.** Its creator closes it, which deletes it. Otherwise it is deleted when the JVM ends.
    ///
    /// @param folder that contains only this file
    /// @param bytes of the file
    record TestFile(Path folder, long bytes) implements AutoCloseable {

        /// Free bytes that the benchmark leaves to other processes.
        private static final long MIN_FREE_BYTES = 1L << 30;

        /// Returns whether the folder has room for a file and some more.
        static boolean hasRoom(Path folder, long bytes) throws IOException {
            return Files.getFileStore(folder).getUsableSpace() >= bytes + MIN_FREE_BYTES;
        }

        static boolean isInMemory(Path folder) throws IOException {
            return Files.getFileStore(folder).type().equals("tmpfs");
        }

        private static TestFile empty(Path folder, long bytes) throws IOException {
            Path own = Files.createTempDirectory(folder, "kvcache-bench-");
            TestFile file = new TestFile(own, bytes);
            own.toFile().deleteOnExit(); // Last, as they go in reverse order.
            file.path().toFile().deleteOnExit();
            return file;
        }

        /// @param mover writes all of it, as what was never written need not be read from a disk
        static TestFile create(Path folder, long bytes, DeviceIoRunner mover) throws IOException {
            TestFile file = empty(folder, bytes);
            try {
                mover.run(file.workload(bytes, AccessPattern.REGION_WRITE, 4 << 20));
            } catch (IOException | RuntimeException failure) {
                file.close();
                throw failure;
            }
            return file;
        }

        private Path path() {
            return folder.resolve("file");
        }

        IoWorkload workload(long totalBytes, AccessPattern pattern, int pieceBytes) {
            return new IoWorkload(path(), bytes, totalBytes, pattern, pieceBytes, DiskBenchFixture.DEPTH);
        }

        @Override
        public void close() throws IOException {
            Files.deleteIfExists(path());
            Files.deleteIfExists(folder);
        }
    }
}
