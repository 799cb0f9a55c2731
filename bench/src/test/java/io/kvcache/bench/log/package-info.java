@NullMarked
package io.kvcache.bench.log;

import org.jspecify.annotations.NullMarked;
