/// Tests of the command line that ships, through its public entry.
@NullMarked
package io.kvcache.server.cli;

import org.jspecify.annotations.NullMarked;
