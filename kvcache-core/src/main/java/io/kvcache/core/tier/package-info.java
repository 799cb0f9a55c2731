/// A tier of storage as the store sees it: what it is given, asked and offered.
@NullMarked
package io.kvcache.core.tier;

import org.jspecify.annotations.NullMarked;
