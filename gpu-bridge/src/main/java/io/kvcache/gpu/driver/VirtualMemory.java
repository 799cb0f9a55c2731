package io.kvcache.gpu.driver;

/// Addresses without memory, memory without addresses, and mappings between the two: for memory that
/// grows where it is.
///
/// Mapped memory is copied like any other memory of the device. Spans may cross adjacent mappings.
///
/// **Ownership.** The caller frees a reserved range after it has unmapped everything in it, and releases the
/// memory that it created.
///
/// **Threads.** The driver's.
///
/// **Errors.** [DeviceException], as of the driver. Mapping and unmapping take some ten microseconds
/// each.
public interface VirtualMemory {

    /// The unit of all sizes and places here, in bytes.
    long pageBytes();

    /// Takes addresses.
    ///
    /// @param bytes whole pages
    DeviceSpan reserve(long bytes);

    /// Gives addresses back.
    void unreserve(DeviceSpan range);

    /// Takes memory; what is in it is undefined.
    ///
    /// @param bytes whole pages
    PhysicalPages create(long bytes);

    /// Gives memory back, once it is unmapped as well.
    void release(PhysicalPages pages);

    /// Takes memory that other processes can be given; that has to be said from the beginning.
    ///
    /// @param bytes whole pages
    PhysicalPages createShared(long bytes);

    /// Makes a descriptor of memory, to be sent to another process over a unix socket. The memory lives as
    /// long as any process has the descriptor, or opened it, even when its creator has ended.
    ///
    /// @param pages of [#createShared]
    /// @return a file descriptor of this process; the caller's, to be closed as any other
    /// @throws DeviceException with [DeviceError#BAD_REQUEST] for memory that is not to be shared
    int exportDescriptor(PhysicalPages pages);

    /// Opens memory that another process, or this one, has made a descriptor of. It is released like any.
    ///
    /// @param descriptor stays the caller's, and may be closed at once
    /// @param bytes that the memory is said to have; when it has less, mapping it is refused
    /// @throws DeviceException with [DeviceError#BAD_REQUEST] for a descriptor of anything else
    PhysicalPages open(int descriptor, long bytes);

    /// Puts memory behind reserved addresses, to be read and written there.
    void map(DeviceAddress at, PhysicalPages pages);

    /// Takes memory away from where it was mapped, after waiting for what streams of this driver have been
    /// given, closed ones too. What others do there, as an engine by streams of its own, must be over: the
    /// device itself does not wait, and what comes too late finds nothing, or the memory of another span.
    ///
    /// @throws DeviceException when what is on its way does not end; nothing is unmapped then
    void unmap(DeviceAddress at, PhysicalPages pages);

    /// Memory of a device without an address, see [VirtualMemory].
    ///
    /// @param handle as the driver has it
    /// @param bytes of it, whole pages
    public record PhysicalPages(long handle, long bytes) {}
}
