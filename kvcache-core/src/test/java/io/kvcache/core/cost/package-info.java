/// Tests of what prefilling costs.
@NullMarked
package io.kvcache.core.cost;

import org.jspecify.annotations.NullMarked;
