/// The block device and a store over a disk: their speed, blocks layer by layer, coded blocks, and reopening a
/// full tier.
///
/// [io.kvcache.bench.disk.SparseTierImage] makes a tier of tables alone, which
/// [io.kvcache.bench.disk.TierOpenTiming] opens.
@NullMarked
package io.kvcache.bench.disk;

import org.jspecify.annotations.NullMarked;
