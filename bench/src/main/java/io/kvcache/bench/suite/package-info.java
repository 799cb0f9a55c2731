/// Suites of questions with budgets, and the runner that answers them: what `kvcache bench` does.
///
/// A [io.kvcache.bench.suite.BenchmarkSuite] is a list of [io.kvcache.bench.suite.BenchmarkSpec]s; each names what is
/// measured, what it is held against, and its [io.kvcache.bench.suite.Threshold]. A new suite is a line in
/// [io.kvcache.bench.suite.SuiteCatalogue].
@NullMarked
package io.kvcache.bench.suite;

import org.jspecify.annotations.NullMarked;
