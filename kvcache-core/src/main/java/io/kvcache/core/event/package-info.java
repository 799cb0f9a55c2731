/// What was stored and removed, in order, for routers and indexers.
@NullMarked
package io.kvcache.core.event;

import org.jspecify.annotations.NullMarked;
