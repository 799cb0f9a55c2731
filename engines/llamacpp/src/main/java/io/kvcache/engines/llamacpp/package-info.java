/// llama.cpp, an inference engine in C++, called without JNI, with the state of its sequences in blocks
/// that a [io.kvcache.core.KvCache] can keep: `LlamaLibrary` is the native library, found to be one that
/// this adapter knows; `LlamaModel` is a model in it and says what must match for blocks to be right. What
/// generates with it is a [io.kvcache.engines.generator.PrefixCachedGenerator].
///
/// The JVM needs `--enable-native-access` for it.
///
/// May import `io.kvcache.core` and `io.kvcache.engines.generator`; no implementation of `KvCache`.
@NullMarked
package io.kvcache.engines.llamacpp;

import org.jspecify.annotations.NullMarked;
