/// Tests of the command line, through its public entry.
@NullMarked
package io.kvcache.planner.cli;

import org.jspecify.annotations.NullMarked;
