/// Hot blocks in device memory.
///
/// | package | content |
/// |---|---|
/// | `driver` | interface of a device |
/// | `cuda`, `host` | NVIDIA's devices; a stand-in in plain Java |
/// | `tier` | device memory as a tier of a store |
/// | `engine` | a unix socket for engines in other processes |
/// | `paging` | copies between blocks and an engine's pages |
/// | `kernel` | code that runs on the device |
/// | `sequence` | paged KV memory of an engine in this process |
///
/// An engine in the same process calls some classes that the store itself does not use: the package `sequence`,
/// `PageCopier` and `AttentionScoreKernels`.
///
/// May import `io.kvcache.core`; never `io.kvcache.tiers` or `io.kvcache.transport`. Only this module uses JCuda.
@NullMarked
package io.kvcache.gpu;

import org.jspecify.annotations.NullMarked;
