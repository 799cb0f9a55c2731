@NullMarked
package io.kvcache.tiers.use;

import org.jspecify.annotations.NullMarked;
