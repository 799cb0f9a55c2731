/// What keys are made of: [io.kvcache.core.hash.Sha256], and [io.kvcache.core.hash.Utf8] for the texts under it.
///
/// Imports nothing of KVCache.
@NullMarked
package io.kvcache.core.hash;

import org.jspecify.annotations.NullMarked;
