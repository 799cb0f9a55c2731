/// Tests of what is handed on.
@NullMarked
package io.kvcache.bench.pack;

import org.jspecify.annotations.NullMarked;
