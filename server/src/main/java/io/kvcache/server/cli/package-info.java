/// The command line that ships: [io.kvcache.server.cli.Kvcache] and one class a command.
///
/// Exit codes: 0 done, 1 it failed, 2 the command was not understood; `serve` has more. Errors go to standard error. A
/// new command is one class and one line in [io.kvcache.server.cli.Kvcache#commands]. Modules with more commands add
/// them to this command line by [io.kvcache.server.cli.CommandLineBuilder].
@NullMarked
package io.kvcache.server.cli;

import org.jspecify.annotations.NullMarked;
