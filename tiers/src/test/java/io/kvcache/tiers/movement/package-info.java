@NullMarked
package io.kvcache.tiers.movement;

import org.jspecify.annotations.NullMarked;
