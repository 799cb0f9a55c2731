package io.kvcache.gpu.driver;

/// What was taken from a device and not given back yet.
///
/// @param slabs allocations
/// @param slabBytes their bytes
/// @param registrations of host memory
/// @param virtual ranges, mappings and pages of [VirtualMemory]
/// @param opened memory of other processes, see [DeviceIpc]
public record ResourceCounts(
        int slabs, long slabBytes, int registrations, int streams, int events, int programs, int virtual, int opened) {

    /// Nothing.
    public static final ResourceCounts NONE = new ResourceCounts(0, 0, 0, 0, 0, 0, 0, 0);
}
