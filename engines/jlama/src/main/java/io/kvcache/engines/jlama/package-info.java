/// Jlama, an inference engine in Java, with a [io.kvcache.core.KvCache] before its prefill:
/// `PrefixCachedGenerator` takes keys and values of a prompt's beginning from the store and computes the
/// rest; `JlamaModel` is the loaded model and says what must match for that to be right.
///
/// Uses Jlama's public interfaces alone. The JVM needs `--add-modules jdk.incubator.vector`, as Jlama
/// does.
///
/// May import `io.kvcache.core` and Jlama; no implementation of `KvCache`.
@NullMarked
package io.kvcache.engines.jlama;

import org.jspecify.annotations.NullMarked;
