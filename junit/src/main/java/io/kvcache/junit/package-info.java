/// A JUnit extension that starts a cache server in the JVM of a test: [KvCacheServerExtension], or [KvCacheServer] as
/// an annotation.
///
/// May import `io.kvcache.server`, `io.kvcache.tiers`, `io.kvcache.transport`, `io.kvcache.core` and JUnit's API.
@NullMarked
package io.kvcache.junit;

import org.jspecify.annotations.NullMarked;
