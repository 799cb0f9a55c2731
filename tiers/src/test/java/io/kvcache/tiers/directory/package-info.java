@NullMarked
package io.kvcache.tiers.directory;

import org.jspecify.annotations.NullMarked;
