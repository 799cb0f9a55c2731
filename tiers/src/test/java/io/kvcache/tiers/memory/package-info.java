@NullMarked
package io.kvcache.tiers.memory;

import org.jspecify.annotations.NullMarked;
