package io.kvcache.bench.disk;

/// Who moves the bytes.
public enum IoEngine {
    /// Our block device, on the best path there is.
    DEVICE,
    /// The same, each piece into memory of its own out of as much as [#STORE] has for blocks: what is in no cache costs
    /// more to fill than a few buffers that always are.
    DEVICE_INTO_SLOTS,
    /// Our block device in a thread to which the kernel denies io_uring.
    DEVICE_WITHOUT_URING,
    /// A store that brings blocks from a disk tier into host memory, verified and pinned; only reads.
    STORE,
    /// fio with io_uring, fixed buffers and a registered file.
    FIO_URING,
    /// fio with as many threads as the queue is deep, each with blocking reads and writes.
    FIO_PSYNC
}
