/// A small server of OpenAI's chat and completion protocol over an engine with a store, so that any
/// client shows what the store saves: its usage block says how many tokens of a prompt were cached.
///
/// May import `io.kvcache.core`, `io.kvcache.engines.generator`, Netty, Jackson and Micrometer; no
/// implementation of `KvCache`, and no engine.
@NullMarked
package io.kvcache.engines.chat;

import org.jspecify.annotations.NullMarked;
