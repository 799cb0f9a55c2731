/// A device over NVIDIA's driver.
///
/// JCuda does what it does well: initialization, queries, the primary context, streams, events,
/// allocation, registration and single copies. `java.lang.foreign` does what JCuda lacks or has wrong,
/// beginning with batches of copies. Both meet in plain handles and addresses, over one `libcuda.so.1`.
///
/// May import `io.kvcache.gpu.driver` and JCuda.
@NullMarked
package io.kvcache.gpu.cuda;

import org.jspecify.annotations.NullMarked;
