/// What the disk suite runs: the same traffic through a block device of ours and through fio, in turns.
///
/// A [io.kvcache.bench.disk.Trial] names one run; [io.kvcache.bench.disk.DiskBench] has the files and carries
/// it out as [io.kvcache.bench.disk.Traffic]. It does not know of suites and questions.
///
/// [io.kvcache.bench.disk.SparseTier] makes a tier of tables alone, which [io.kvcache.bench.disk.Reopening] opens.
@NullMarked
package io.kvcache.bench.disk;

import org.jspecify.annotations.NullMarked;
