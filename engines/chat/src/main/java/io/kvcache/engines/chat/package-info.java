/// A small server of OpenAI's chat and completion protocol over an engine with a store, so that any
/// client shows what the store saves: its usage block says how many tokens of a prompt were cached.
///
/// May import `io.kvcache.core`, `io.kvcache.engines.jlama`, Netty, Jackson and Micrometer; no implementation of
/// `KvCache`.
@NullMarked
package io.kvcache.engines.chat;

import org.jspecify.annotations.NullMarked;
