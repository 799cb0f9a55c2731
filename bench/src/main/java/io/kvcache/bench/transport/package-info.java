/// The remote cache from another process, over each transport.
@NullMarked
package io.kvcache.bench.transport;

import org.jspecify.annotations.NullMarked;
