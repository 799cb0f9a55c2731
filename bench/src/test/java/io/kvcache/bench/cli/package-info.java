/// Tests of the command line, through its public entry.
@NullMarked
package io.kvcache.bench.cli;

import org.jspecify.annotations.NullMarked;
