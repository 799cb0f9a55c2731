/// Tests of the demo and the measurements of engines.
@NullMarked
package io.kvcache.bench.engine;

import org.jspecify.annotations.NullMarked;
