/// What it takes to compute KV instead of keeping it. Imports identity alone.
@NullMarked
package io.kvcache.core.cost;

import org.jspecify.annotations.NullMarked;
