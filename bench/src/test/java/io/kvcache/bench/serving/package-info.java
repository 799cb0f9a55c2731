/// Tests of calibrating and checking.
@NullMarked
package io.kvcache.bench.serving;

import org.jspecify.annotations.NullMarked;
