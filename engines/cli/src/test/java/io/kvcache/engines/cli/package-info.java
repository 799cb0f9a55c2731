/// Tests of the commands that need inference engines, over models of random weights.
@NullMarked
package io.kvcache.engines.cli;

import org.jspecify.annotations.NullMarked;
