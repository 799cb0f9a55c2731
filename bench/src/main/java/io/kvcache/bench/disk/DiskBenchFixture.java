package io.kvcache.bench.disk;

import io.kvcache.tiers.device.FileDevice;
import io.kvcache.tiers.memory.MappedMemory;
import io.kvcache.tiers.memory.MappedMemorySource;
import io.kvcache.tiers.memory.MemoryOptions;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
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
        IoWorkload work = file.workload(effort.bytes(diskRun.place()), diskRun.pattern(), diskRun.pieceBytes());
        return switch (diskRun.mover()) {
            case DEVICE -> mover.run(work);
            case DEVICE_INTO_SLOTS -> slotMover.run(work);
            case DEVICE_WITHOUT_URING -> mover.runWithoutUring(work);
            case STORE -> store(diskRun).acquireBytes(effort.bytes(diskRun.place()));
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
}
