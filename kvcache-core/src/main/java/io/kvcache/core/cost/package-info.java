/// Cost of computing KV instead of keeping it. Imports identity alone.
@NullMarked
package io.kvcache.core.cost;

import org.jspecify.annotations.NullMarked;
