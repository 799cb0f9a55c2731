/// The remote cache over TCP beside a responder that does nothing but answer, in one run on the same
/// cores.
@NullMarked
package io.kvcache.bench.transport;

import org.jspecify.annotations.NullMarked;
