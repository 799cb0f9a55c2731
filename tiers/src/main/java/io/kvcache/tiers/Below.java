package io.kvcache.tiers;

import io.kvcache.core.Clock;
import io.kvcache.core.memory.HostMemorySource;
import io.kvcache.core.store.HostStore;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.tiers.disk.Geometry;
import io.kvcache.tiers.memory.MappedMemorySource;
import io.kvcache.tiers.memory.MemoryOptions;
import io.kvcache.tiers.movement.Movement;
import io.kvcache.tiers.movement.MoverLimits;
import io.kvcache.tiers.movement.TierThreads;
import io.kvcache.tiers.movement.WriteBudget;
import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// What lies below host memory: the disks and the threads that drive them, or nothing.
record Below(@Nullable Movement movement, @Nullable TierThreads threads) {

    /// What is written, and what a use is worth if that matters.
    record Admission(AdmissionKind kind, double gain) {}

    static final Below NOTHING = new Below(null, null);

    /// @throws io.kvcache.tiers.directory.DiskRefusedException when a directory cannot be used
    static Below open(HostStore store, List<DiskOptions> disks, Admission admission, Clock clock) {
        HostMemorySource memory = new MappedMemorySource(MemoryOptions.defaults());
        List<Movement.Target> targets =
                disks.stream().map(disk -> target(disk, store, memory)).toList();
        long each = disks.stream()
                .mapToLong(disk -> Geometry.of(disk.bytes()).maxEntryBytes())
                .min()
                .orElse(0);
        Movement movement = new Movement(
                store.disks(),
                clock,
                targets,
                new Movement.Admitting(admission.kind, store.capacityBytes(), each, admission.gain),
                MoverLimits.of(store.capacityBytes()));
        return new Below(movement, TierThreads.start(movement));
    }

    private static Movement.Target target(DiskOptions disk, HostStore store, HostMemorySource memory) {
        return new Movement.Target(
                new DirectoryOpener(disk, memory, store.memory()),
                disk.aliveBytes(),
                new WriteBudget(disk.bytesPerSecond(), disk.bytesPerDay()));
    }

    /// Writes what waits to be written, as long as that takes no longer than the patience, and closes the disks.
    void end(Duration patience) {
        if (movement != null && threads != null) {
            movement.await(movement.flushQueued(), patience.toNanos());
            threads.close();
        }
    }
}
