/// How blocks lie on a disk: a log of regions, and what it takes to find everything again after a crash.
///
/// So far the format alone — [io.kvcache.tiers.disk.Geometry], [io.kvcache.tiers.disk.Superblock],
/// [io.kvcache.tiers.disk.Group] and [io.kvcache.tiers.disk.Trailer] read and write pages in memory; the tier that
/// moves them to a device comes next.
@NullMarked
package io.kvcache.tiers.disk;

import org.jspecify.annotations.NullMarked;
