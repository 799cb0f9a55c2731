package io.kvcache.gpu.driver;

/// Addresses without memory, memory without addresses, and mappings between the two: for memory that
/// grows where it is.
///
/// What is mapped is copied from and to like any other memory of the device; spans may cross mappings
/// that lie side by side.
///
/// **Ownership.** What is reserved is freed, after all in it was unmapped; what is created is released.
///
/// **Threads.** The driver's.
///
/// **Errors.** [DeviceException], as of the driver. Mapping and unmapping take some ten microseconds
/// each, and unmapping waits for what is on its way.
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
    DevicePages create(long bytes);

    /// Gives memory back, once it is unmapped as well.
    void release(DevicePages pages);

    /// Puts memory behind reserved addresses, to be read and written there.
    void map(DeviceAddress at, DevicePages pages);

    /// Takes memory away from where it was mapped.
    void unmap(DeviceAddress at, DevicePages pages);
}
