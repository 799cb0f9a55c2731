/// What coded blocks gain over a link of a known speed.
@NullMarked
package io.kvcache.bench.link;

import org.jspecify.annotations.NullMarked;
