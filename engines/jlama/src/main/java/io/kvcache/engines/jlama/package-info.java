/// Jlama, an inference engine in Java, with a [io.kvcache.core.KvCache] before its prefill: `JlamaModel` is
/// the loaded model, lets keys and values in and out, and says what must match for them to be right. What
/// generates with it is a [io.kvcache.engines.generator.PrefixCachedGenerator].
///
/// Uses Jlama's public interfaces alone. The JVM needs `--add-modules jdk.incubator.vector`, as Jlama
/// does.
///
/// May import `io.kvcache.core`, `io.kvcache.engines.generator` and Jlama; no implementation of `KvCache`.
@NullMarked
package io.kvcache.engines.jlama;

import org.jspecify.annotations.NullMarked;
