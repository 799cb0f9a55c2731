/// Blocks over HTTP: namespaces by name, and in each blocks by the keys that an engine gave them.
///
/// [io.kvcache.server.block.BlockEndpoint] is what a listener serves.
///
/// May not import another protocol or the keyspace.
@NullMarked
package io.kvcache.server.block;

import org.jspecify.annotations.NullMarked;
