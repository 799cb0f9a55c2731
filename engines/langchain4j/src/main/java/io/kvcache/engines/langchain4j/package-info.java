/// A chat model of langchain4j over an engine with a store before its prefill.
///
/// May import `io.kvcache.core`, `io.kvcache.engines.generator` and langchain4j.
@NullMarked
package io.kvcache.engines.langchain4j;

import org.jspecify.annotations.NullMarked;
