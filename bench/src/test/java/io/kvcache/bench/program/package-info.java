@NullMarked
package io.kvcache.bench.program;

import org.jspecify.annotations.NullMarked;
