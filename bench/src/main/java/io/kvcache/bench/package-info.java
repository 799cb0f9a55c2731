/// Measurement: the demo, JMH benchmarks, comparisons with peers and budgets, clusters and GPUs, and a command line
/// that adds them to the planner's. The simulation of a store and the trials of crashes are in the test tree.
///
/// Stands on top of everything; only the commands of engines may import it. JMH is used nowhere else.
@NullMarked
package io.kvcache.bench;

import org.jspecify.annotations.NullMarked;
