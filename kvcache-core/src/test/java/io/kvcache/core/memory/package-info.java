/// Tests of slabs and slots, and the double of host memory.
@NullMarked
package io.kvcache.core.memory;

import org.jspecify.annotations.NullMarked;
