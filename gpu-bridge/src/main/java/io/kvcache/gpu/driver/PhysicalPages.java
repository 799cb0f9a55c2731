package io.kvcache.gpu.driver;

/// Memory of a device without an address, see [VirtualMemory].
///
/// @param handle as the driver has it
/// @param bytes of it, whole pages
public record PhysicalPages(long handle, long bytes) {}
