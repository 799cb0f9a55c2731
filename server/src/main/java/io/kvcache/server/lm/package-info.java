/// LMCache's `lm://`, over a keyspace: what the cache server of the vLLM production stack speaks.
///
/// May not import another protocol.
@NullMarked
package io.kvcache.server.lm;

import org.jspecify.annotations.NullMarked;
