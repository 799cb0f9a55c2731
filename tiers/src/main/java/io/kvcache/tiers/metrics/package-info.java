/// The store's statistics as Micrometer meters. Micrometer is an optional dependency: nothing else of tiers uses
/// it.
@NullMarked
package io.kvcache.tiers.metrics;

import org.jspecify.annotations.NullMarked;
