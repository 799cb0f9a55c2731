/// How blocks lie on a disk: a log of regions, and what it takes to find everything again after a crash.
///
/// [io.kvcache.tiers.disk.DiskLog] is the log over one device, driven tick by tick: a
/// [io.kvcache.core.tier.Tier], which tells its listener, the tier's worker, what lies where. The format is in
/// DiskGeometry, Superblock, DiskGeneration, WriteBatchHeader, RegionTrailer and DiskEntry.
/// [io.kvcache.tiers.disk.DiskSet] has the disks of one store, and knows which of them was away.
/// [io.kvcache.tiers.disk.LogHeader] and [io.kvcache.tiers.disk.LogAudit] look at a log that is not open.
///
/// May import core (but not `io.kvcache.core.store`), `io.kvcache.tiers.device`, `io.kvcache.tiers.options` and the JDK
/// only.
@NullMarked
package io.kvcache.tiers.disk;

import org.jspecify.annotations.NullMarked;
