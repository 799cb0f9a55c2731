/// Events on stored and removed blocks, in order, for routers and indexers.
@NullMarked
package io.kvcache.core.event;

import org.jspecify.annotations.NullMarked;
