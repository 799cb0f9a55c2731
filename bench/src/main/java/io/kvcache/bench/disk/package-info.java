/// The disk suite: the same traffic through our block device and through fio, in turns.
///
/// A [io.kvcache.bench.disk.DiskRun] names one run; [io.kvcache.bench.disk.DiskBenchFixture] has the files and carries
/// it out as [io.kvcache.bench.disk.TransferResult]. It does not know of suites and questions.
///
/// [io.kvcache.bench.disk.SparseTierImage] makes a tier of tables alone, which [io.kvcache.bench.disk.TierOpenTiming]
/// opens.
@NullMarked
package io.kvcache.bench.disk;

import org.jspecify.annotations.NullMarked;
