/// A device in plain Java, for unit tests and machines without a GPU: its memory is host memory that
/// hides behind addresses that the CPU cannot use, its streams are threads.
///
/// May import `io.kvcache.gpu.driver`.
@NullMarked
package io.kvcache.gpu.host;

import org.jspecify.annotations.NullMarked;
