/// The command line of what measures: [io.kvcache.bench.cli.Kvcache] adds one class a command to the planner's.
///
/// Exit codes: 0 done, 1 it failed, 2 the command was not understood. Errors go to standard error. A new command is
/// one class and one line in [io.kvcache.bench.cli.Kvcache#commands].
@NullMarked
package io.kvcache.bench.cli;

import org.jspecify.annotations.NullMarked;
