/// Tests of the laboratory.
@NullMarked
package io.kvcache.bench.opaque;

import org.jspecify.annotations.NullMarked;
