@NullMarked
package io.kvcache.bench.crash;

import org.jspecify.annotations.NullMarked;
