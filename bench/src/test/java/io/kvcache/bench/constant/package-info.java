@NullMarked
package io.kvcache.bench.constant;

import org.jspecify.annotations.NullMarked;
