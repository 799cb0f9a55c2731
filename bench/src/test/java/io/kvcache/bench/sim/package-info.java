@NullMarked
package io.kvcache.bench.sim;

import org.jspecify.annotations.NullMarked;
