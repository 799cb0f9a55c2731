/// The commands of the planner, their options, and how they print rows:
/// [io.kvcache.planner.cli.PlannerCommands] adds one
/// class a command to the server's.
///
/// Exit codes: 0 done, 1 it failed, 2 the command was not understood. Errors go to standard error.
@NullMarked
package io.kvcache.planner.cli;

import org.jspecify.annotations.NullMarked;
