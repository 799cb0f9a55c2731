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
public final class DiskBench implements AutoCloseable {

    /// Requests on their way at a time: four keep a disk busy with pieces of this size, eight do surely.
    public static final int DEPTH = 8;

    /// The largest piece of a trial.
    private static final int MAX_PIECE_BYTES = 4 << 20;

    private static final int PAGE_BYTES = 4096;

    private final DiskPlaces places;
    private final DiskEffort effort;
    private final MappedMemory memory;
    private final DeviceMover mover;
    private final DeviceMover slotMover;
    private final Map<Place, TestFile> files = new EnumMap<>(Place.class);

    private final Map<StoreKey, StoreMover> stores = new HashMap<>();

    private record StoreKey(Place place, int blockBytes) {}

    /// The device says what path it takes at every opening, which would be once a trial; the report says it.
    private final Logger deviceLog = Logger.getLogger(FileDevice.class.getPackageName());

    private DiskBench(DiskPlaces places, DiskEffort effort) {
        this.places = places;
        this.effort = effort;
        this.memory = new MappedMemorySource(MemoryOptions.defaults()).reserve("bench-disk", StoreMover.HOST_BYTES);
        this.mover = new DeviceMover(memory.segment().asSlice(0, (long) DEPTH * MAX_PIECE_BYTES), true);
        this.slotMover = new DeviceMover(memory.segment(), false);
        byte[] page = new byte[PAGE_BYTES];
        new Random(Pattern.SEED).nextBytes(page);
        for (long at = 0; at < memory.segment().byteSize(); at += PAGE_BYTES) {
            MemorySegment.copy(MemorySegment.ofArray(page), 0, memory.segment(), at, PAGE_BYTES);
        }
        deviceLog.setLevel(Level.SEVERE);
    }

    /// Makes a file in each place, and reads it once to warm up.
    ///
    /// @param places folders
    /// @throws IOException when a file cannot be made; then none is left
    public static DiskBench open(DiskPlaces places, DiskEffort effort) throws IOException {
        DiskBench bench = new DiskBench(places, effort);
        try {
            for (Map.Entry<Place, Path> place : places.folders().entrySet()) {
                TestFile file = TestFile.create(place.getValue(), DiskPlaces.FILE_BYTES, bench.mover);
                bench.files.put(place.getKey(), file);
                bench.mover.move(file.workload(DiskPlaces.FILE_BYTES, Pattern.RANDOM_READ, 1 << 20));
            }
            return bench;
        } catch (IOException | RuntimeException failure) {
            bench.close();
            throw failure;
        }
    }

    /// Runs a trial.
    public Traffic run(Trial trial) throws IOException {
        TestFile file = files.get(trial.place());
        if (file == null) {
            throw new IllegalArgumentException("there is no file for " + trial.describe());
        }
        Workload work = file.workload(effort.bytes(trial.place()), trial.pattern(), trial.pieceBytes());
        return switch (trial.mover()) {
            case DEVICE -> mover.move(work);
            case DEVICE_INTO_SLOTS -> slotMover.move(work);
            case DEVICE_WITHOUT_URING -> mover.moveWithoutUring(work);
            case STORE -> store(trial).move(effort.bytes(trial.place()));
            case FIO_URING -> Fio.moveByUring(work);
            case FIO_PSYNC -> Fio.moveByThreads(work);
        };
    }

    /// Filled by the first trial that needs it.
    private StoreMover store(Trial trial) throws IOException {
        StoreKey key = new StoreKey(trial.place(), trial.pieceBytes());
        StoreMover store = stores.get(key);
        if (store == null) {
            store = StoreMover.open(Objects.requireNonNull(places.folders().get(trial.place())), trial.pieceBytes());
            stores.put(key, store);
        }
        return store;
    }

    @Override
    public void close() throws IOException {
        deviceLog.setLevel(null);
        try {
            for (StoreMover store : stores.values()) {
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
