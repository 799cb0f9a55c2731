package io.kvcache.tiers.memory;

import io.kvcache.core.shm.SharedMemory.SharedMemoryFiles;
import io.kvcache.core.shm.StagingArea;
import io.kvcache.core.spi.HostMemory;
import io.kvcache.core.spi.HostMemorySource;
import io.kvcache.core.tree.IndexHeader;
import io.kvcache.tiers.memory.MappedMemory.SharedMemoryFile;
import io.kvcache.tiers.memory.PagePrefaulter.BackgroundPrefaulter;
import io.kvcache.tiers.options.MemoryOptions;
import io.kvcache.tiers.options.StagingLimits;
import io.kvcache.tiers.os.ByteSizeFormat;
import io.kvcache.tiers.os.Libc;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.MemorySegment;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/// Host memory of one store whose slots and records lie in files that other processes map read-only.
///
/// The store's own records are shared, not a mirror of them: look-ups take no lock and re-check what they
/// read, so a process that can read the memory can look up, and there is nothing to keep in step, nothing to write
/// twice, and no moment at which the two differ.
///
/// **Files**: 0600, in a folder of mode 0700 that one store has at a time, by a lock. Too little space is
/// refused with both sizes; it is taken at once, but for that of many values, see [SpaceReservation]. A store
/// that is killed leaves them behind; the next one in the folder removes them, or [#removeAbandoned]. They are
/// never shortened, so a mapping of them can be read for as long as it is there.
///
/// **Ownership.** The folder is claimed by the first reservation, and given up when the last one is closed.
///
/// **Threads.** Any, but for [#publish].
public final class SharedMemorySource implements HostMemorySource {

    /// The store's name for the memory of values.
    private static final String SLOTS = "slots";

    /// The store's name for the memory of its index and its records.
    private static final String RECORDS = "records";

    /// Another process that looks for folders of killed stores has a lock for far less.
    private static final long MAX_LOCK_NANOS = TimeUnit.SECONDS.toNanos(1);

    private static final long LOCK_PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(5);

    private final Path folder;
    private final long epoch;
    private final UUID proof = UUID.randomUUID();
    private final ShmFileFactory files;
    private final MappedMemorySource plain;
    private final StagingFiles staging;
    private @Nullable ShmDirectoryLock claim;
    private @Nullable SharedRegion slots;
    private @Nullable SharedRegion records;
    private boolean published;
    private int open;

    /// @param folder of a file system in memory; made when it is missing
    /// @param epoch a random number, another one for every store
    public SharedMemorySource(Path folder, long epoch) {
        this(folder, epoch, StagingLimits.DEFAULTS);
    }

    /// The same with other limits.
    ///
    /// @param limits of what clients write into
    public SharedMemorySource(Path folder, long epoch, StagingLimits limits) {
        this.folder = folder.toAbsolutePath();
        this.epoch = epoch;
        files = new ShmFileFactory(Libc.system(), this.folder);
        plain = new MappedMemorySource(MemoryOptions.defaults());
        staging = new StagingFiles(files, limits);
    }

    /// A folder that a killed store left behind.
    ///
    /// @param bytes of the files in it
    /// @param mappedBy process ids of clients that still map some of it, as far as this user can see; it is removed
    ///     only after they have ended
    public record AbandonedFolder(Path folder, long bytes, List<Long> mappedBy) {}

    /// Returns the folders that killed stores of this user left behind.
    ///
    /// @param parent a file system in memory, such as `/dev/shm`
    public static List<AbandonedFolder> abandoned(Path parent) {
        return ShmDirectoryLock.abandoned(parent, false);
    }

    /// Removes the folders that killed stores of this user left behind and that no process maps, and returns them.
    ///
    /// @param parent a file system in memory, such as `/dev/shm`
    public static List<AbandonedFolder> removeAbandoned(Path parent) {
        return ShmDirectoryLock.abandoned(parent, true);
    }

    @Override
    public synchronized HostMemory reserve(String purpose, long bytes) {
        if (purpose.equals(SLOTS)) {
            MappingRequest wanted = new MappingRequest(purpose, bytes);
            slots = mapRegion(wanted, 0, SpaceReservation.atOnce(wanted));
            return slots;
        }
        if (purpose.equals(RECORDS)) {
            MappingRequest wanted = new MappingRequest(purpose, bytes + IndexHeader.BYTES);
            records = mapRegion(wanted, IndexHeader.BYTES, wanted.bytes());
            return records;
        }
        return plain.reserve(purpose, bytes);
    }

    /// @param atOnce bytes that are given space before they are mapped, the others afterwards
    private SharedRegion mapRegion(MappingRequest wanted, long head, long atOnce) {
        lockFolder(wanted);
        open++;
        try {
            SharedMemoryFile file = files.create(wanted, atOnce);
            MappedMemory mapping = plain.mapFile(wanted, file);
            SpaceReservation rest = atOnce < wanted.bytes()
                    ? SpaceReservation.start(wanted, reserved -> files.reserveStep(wanted, file, reserved))
                    : null;
            return new SharedRegion(mapping, head, rest);
        } catch (RuntimeException refused) {
            onRegionClosed();
            throw refused;
        }
    }

    private void lockFolder(MappingRequest wanted) {
        if (claim != null) {
            return;
        }
        long start = System.nanoTime();
        while (claim == null) {
            claim = tryLockFolder(wanted);
            if (claim == null) {
                if (System.nanoTime() - start > MAX_LOCK_NANOS) {
                    throw ShmDirectoryLock.alreadyLocked(wanted, folder);
                }
                LockSupport.parkNanos(LOCK_PAUSE_NANOS);
            }
        }
    }

    private @Nullable ShmDirectoryLock tryLockFolder(MappingRequest wanted) {
        try {
            boolean made = files.makePrivateDirectory(wanted);
            return ShmDirectoryLock.tryAcquire(wanted, folder, made);
        } catch (NoSuchFileException removed) {
            return null;
        } catch (IOException failure) {
            throw wanted.failed(failure.toString());
        }
    }

    private synchronized void onRegionClosed() {
        open--;
        if (open == 0 && claim != null) {
            staging.close();
            claim.close();
            claim = null;
        }
    }

    /// Writes the header of the index: from now on others may read. To be called when the store is built,
    /// by one thread.
    ///
    /// @param count records that the store takes
    /// @param hasDevice whether blocks may be on a device, which the index does not show
    public synchronized SharedMemoryFiles publish(int count, boolean hasDevice) {
        SharedRegion index = records;
        SharedRegion values = slots;
        if (index == null || values == null) {
            throw new IllegalStateException("nothing is reserved that could be published");
        }
        new IndexHeader(epoch, count, values.segment().byteSize(), hasDevice, proof).publish(index.header());
        published = true;
        return new SharedMemoryFiles(folder.toString(), values.name(), index.name(), epoch);
    }

    /// As [io.kvcache.core.shm.SharedMemory#proof].
    public UUID proof() {
        return proof;
    }

    /// As [io.kvcache.core.shm.SharedMemory#maxStagingBytes].
    public long maxStagingBytes() {
        return staging.limits().clientBytes();
    }

    /// As [io.kvcache.core.shm.SharedMemory#createStagingArea], after [#publish].
    public StagingArea createStagingArea(long bytes) {
        return staging.create(bytes);
    }

    /// Says that the store serves no more, while the header is there.
    private synchronized void markClosed() {
        if (published && records != null) {
            published = false;
            IndexHeader.close(records.header());
        }
    }

    /// One file, perhaps with a head before what the store gets.
    private final class SharedRegion implements HostMemory {

        private final MappedMemory mapping;
        private final long headerBytes;
        private final @Nullable SpaceReservation space;

        SharedRegion(MappedMemory whole, long headBytes, @Nullable SpaceReservation space) {
            this.mapping = whole;
            this.headerBytes = headBytes;
            this.space = space;
        }

        MemorySegment header() {
            return mapping.segment().asSlice(0, headerBytes);
        }

        String name() {
            return mapping.sharedPath().orElseThrow().getFileName().toString();
        }

        @Override
        public MemorySegment segment() {
            return mapping.segment().asSlice(headerBytes);
        }

        @Override
        public boolean awaitSpace(long bytes) {
            return space == null || space.awaitSpace(headerBytes + bytes);
        }

        @Override
        public String describe() {
            return mapping.describe();
        }

        @Override
        public void close() {
            markClosed();
            if (space != null) {
                space.close();
            }
            try {
                mapping.close();
            } finally {
                onRegionClosed();
            }
        }
    }

    /// Takes the space of a large file in memory by a thread of its own, from the front, while the front is in
    /// use.
    ///
    /// The kernel clears each page that it gives, which takes .3 to .5 s a GiB. What is used before it has
    /// space waits in [#awaitSpace] instead of being killed by SIGBUS. Where space runs out, as others took it
    /// since it was looked at, a warning says so and the rest of the file is not to be used.
    ///
    /// **Ownership.** Closed before the file's descriptor.
    ///
    /// **Threads.** Any.
    static final class SpaceReservation implements AutoCloseable {

        private static final Logger LOG = System.getLogger(SpaceReservation.class.getName());

        /// Small stores have all of it at once, so that too little space is an error at their start.
        static final long AT_ONCE_BYTES = 256L << 20;

        private final MappingRequest wanted;
        private final ReservationStep step;
        private final Thread thread;

        // Guarded by this.
        private long reservedBytes;
        private boolean ended;

        private SpaceReservation(MappingRequest wanted, ReservationStep step) {
            this.wanted = wanted;
            this.step = step;
            reservedBytes = atOnce(wanted);
            thread = Thread.ofPlatform()
                    .daemon()
                    .name("kvcache-reserve-" + wanted.purpose())
                    .unstarted(this::run);
        }

        /// The bytes of a file that [ShmFileFactory#create] is to reserve, the rest of which [#start] does.
        static long atOnce(MappingRequest wanted) {
            return Math.min(wanted.bytes(), AT_ONCE_BYTES);
        }

        /// Starts to reserve the rest of a file.
        static SpaceReservation start(MappingRequest wanted, ReservationStep step) {
            SpaceReservation started = new SpaceReservation(wanted, step);
            started.thread.start();
            return started;
        }

        /// As [io.kvcache.core.spi.HostMemory#awaitSpace], from the start of the file.
        synchronized boolean awaitSpace(long bytes) {
            boolean interrupted = false;
            while (reservedBytes < bytes && !ended) {
                try {
                    wait();
                } catch (InterruptedException asked) {
                    interrupted = true;
                }
            }
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
            return reservedBytes >= bytes;
        }

        private void run() {
            long reserved = atOnce(wanted);
            try {
                while (reserved < wanted.bytes() && !hasEnded()) {
                    reserved = step.reserveMore(reserved);
                    advanceTo(reserved);
                }
            } catch (IOException | RuntimeException refused) {
                LOG.log(
                        Level.WARNING,
                        "The store goes on with {0} for values: {1}",
                        ByteSizeFormat.format(reserved),
                        refused.getMessage());
            } finally {
                end();
            }
        }

        private synchronized void advanceTo(long reserved) {
            reservedBytes = reserved;
            notifyAll();
        }

        private synchronized boolean hasEnded() {
            return ended;
        }

        private synchronized void end() {
            ended = true;
            notifyAll();
        }

        /// Reserves a step more of a file.
        @FunctionalInterface
        interface ReservationStep {

            /// Reserves the bytes that follow.
            ///
            /// @param reserved bytes at the start of the file that are
            /// @return how many are now
            long reserveMore(long reserved) throws IOException;
        }

        /// Stops after the step at hand, some 20 ms, and waits for that. May be called again.
        @Override
        public void close() {
            end();
            BackgroundPrefaulter.awaitEnd(thread);
        }
    }
}
