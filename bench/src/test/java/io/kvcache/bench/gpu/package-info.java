/// A store with memory of a device below it.
@NullMarked
package io.kvcache.bench.gpu;

import org.jspecify.annotations.NullMarked;
