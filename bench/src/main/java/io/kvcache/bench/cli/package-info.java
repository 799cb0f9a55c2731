/// The command line `kvcache`: [io.kvcache.bench.cli.Kvcache] and one class a command.
///
/// Exit codes: 0 done, 1 it failed, 2 the command was not understood. Errors go to standard error. A new command is
/// one class and one line in [io.kvcache.bench.cli.CommandTable].
@NullMarked
package io.kvcache.bench.cli;

import org.jspecify.annotations.NullMarked;
