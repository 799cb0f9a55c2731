package io.kvcache.tiers.disk;

/// What a [DiskLog] can do.
public enum LogState {
    /// It reads what is on the device; nothing is taken yet.
    OPENING,
    /// The device holds something that was not to be discarded; nothing was changed. See [DiskLog#formatError].
    REFUSED,
    /// All of it.
    SERVING,
    /// It reads and does not write: there is no space, a sync failed, or a trailer cannot be written.
    READ_ONLY,
    /// Nothing: the device fails or hangs.
    FAILED,
    /// Nothing, because [DiskLog#stop] was called.
    STOPPED
}
