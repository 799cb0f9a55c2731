/// What a tenant may take of the store, whatever it stores.
///
/// [io.kvcache.server.quota.Quota] counts bytes; what it counts is kept by
/// [io.kvcache.server.quota.Quota.EvictableStock]s.
///
/// May not import anything of the server.
@NullMarked
package io.kvcache.server.quota;

import org.jspecify.annotations.NullMarked;
