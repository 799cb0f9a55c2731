/// Identity and layout of a block: everything that decides whether two blocks are the same.
///
/// [io.kvcache.core.identity.Namespace] holds all properties that must match for KV to be reusable, as
/// [io.kvcache.core.identity.Part]s of a [io.kvcache.core.identity.BlockShape].
/// [io.kvcache.core.identity.BlockChain] turns the tokens of a sequence into [io.kvcache.core.identity.BlockKey]s.
/// [io.kvcache.core.identity.ModelPreset] has the numbers of some well-known models.
///
/// [io.kvcache.core.identity.PromptTree] remembers the chains of prompts. Everything else here is an immutable value.
/// The package imports nothing of the store.
@NullMarked
package io.kvcache.core.identity;

import org.jspecify.annotations.NullMarked;
