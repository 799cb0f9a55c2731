/// Statistics that all measurements share.
@NullMarked
package io.kvcache.bench.stats;

import org.jspecify.annotations.NullMarked;
