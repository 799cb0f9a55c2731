/// The share of the store that a tenant may take for its values.
///
/// [io.kvcache.server.quota.ByteBudget] limits what moves at one time; [io.kvcache.server.quota.PartRead] reads parts
/// from disk within one.
///
/// May not import anything of the server.
@NullMarked
package io.kvcache.server.quota;

import org.jspecify.annotations.NullMarked;
