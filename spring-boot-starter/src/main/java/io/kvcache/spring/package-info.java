/// One bean [io.kvcache.core.KvCache] for Spring Boot applications, by the properties `kvcache.*`
/// ([KvCacheProperties]).
///
/// May import `io.kvcache.core`, `io.kvcache.tiers`, `io.kvcache.transport` and Spring Boot.
@NullMarked
package io.kvcache.spring;

import org.jspecify.annotations.NullMarked;
