/// Tests of captured traces.
@NullMarked
package io.kvcache.bench.capture;

import org.jspecify.annotations.NullMarked;
