@NullMarked
package io.kvcache.tiers.metrics;

import org.jspecify.annotations.NullMarked;
