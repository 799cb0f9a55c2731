/// A disk with a tier in front of it.
@NullMarked
package io.kvcache.tiers.front;

import org.jspecify.annotations.NullMarked;
