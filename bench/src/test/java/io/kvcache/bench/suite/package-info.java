/// Tests of how answers follow from readings.
@NullMarked
package io.kvcache.bench.suite;

import org.jspecify.annotations.NullMarked;
