/// Figures of benchmarks, and the one table of budgets that judges them: what `kvcache bench` prints.
///
/// A [io.kvcache.bench.figure.Suite] measures [io.kvcache.bench.figure.Figure]s, and
/// [io.kvcache.bench.figure.FigureBudgets] has their bounds. It knows no benchmark.
@NullMarked
package io.kvcache.bench.figure;

import org.jspecify.annotations.NullMarked;
