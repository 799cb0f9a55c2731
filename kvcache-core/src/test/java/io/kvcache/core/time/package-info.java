/// Tests of time.
@NullMarked
package io.kvcache.core.time;

import org.jspecify.annotations.NullMarked;
