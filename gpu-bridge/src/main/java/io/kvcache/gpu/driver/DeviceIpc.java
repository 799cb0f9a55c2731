package io.kvcache.gpu.driver;

/// Memory and events of a device that another process on the same machine uses too.
///
/// A token of 64 bytes goes to the other process by whatever way there is; it opens the token once. A
/// token speaks of a whole allocation, so where in it something lies has to be said besides. The exporter
/// keeps what it exported until the other has closed it: memory that is freed before, and events
/// of a process that ended, must not be used.
///
/// **Threads.** The driver's.
///
/// **Errors.** [DeviceException] with [DeviceError#BAD_REQUEST] for a token of this process, of something
/// that is gone, or of nothing.
public interface DeviceIpc {

    /// Bytes of a token.
    int TOKEN_BYTES = 64;

    /// Returns a token of memory that was allocated here. The size should be a multiple of 2 MiB: drivers place other
    /// memory in the rest of the last 2 MiB, and share that too.
    byte[] exportToken(DeviceSpan slab);

    /// Opens another process's memory. It can be copied from and to until it is closed.
    ///
    /// @return all that the token speaks of: the allocation, and what the driver has behind it in the
    ///     same block of 2 MiB
    DeviceSpan open(byte[] token);

    /// Closes what [#open] opened, after waiting for what is on its way.
    void close(DeviceSpan opened);

    /// Makes an event that other processes can wait for.
    DeviceEvent createSharedEvent();

    /// Returns a token by which another process opens the event.
    byte[] exportToken(DeviceEvent event);

    /// Opens another process's event: to wait for what that records, or to record what that waits for.
    DeviceEvent openEvent(byte[] token);
}
