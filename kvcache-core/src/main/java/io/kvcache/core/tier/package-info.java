/// A tier of storage as the store sees it: what it is told, asked and offered.
@NullMarked
package io.kvcache.core.tier;

import org.jspecify.annotations.NullMarked;
