/// Time as the implementation counts it.
@NullMarked
package io.kvcache.core.time;

import org.jspecify.annotations.NullMarked;
