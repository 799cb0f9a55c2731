@NullMarked
package io.kvcache.bench.cluster;

import org.jspecify.annotations.NullMarked;
