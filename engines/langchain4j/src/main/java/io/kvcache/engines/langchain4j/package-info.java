/// A chat model of langchain4j over Jlama with a store before its prefill.
///
/// May import `io.kvcache.core`, `io.kvcache.engines.jlama` and langchain4j.
@NullMarked
package io.kvcache.engines.langchain4j;

import org.jspecify.annotations.NullMarked;
