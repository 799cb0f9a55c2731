/// An engine's own KV pool, and how blocks get there and back.
///
/// [io.kvcache.gpu.paging.PagedLayout] says where the pool has what, and
/// plans copies of pages from and to blocks,
/// [io.kvcache.gpu.paging.PageCopier] moves them within the device, by copies or by a kernel,
/// [io.kvcache.gpu.paging.HostPageCopier] moves small pieces between host memory and pages by a kernel.
///
/// May import `io.kvcache.gpu.driver` and `io.kvcache.gpu.kernel`.
@NullMarked
package io.kvcache.gpu.paging;

import org.jspecify.annotations.NullMarked;
