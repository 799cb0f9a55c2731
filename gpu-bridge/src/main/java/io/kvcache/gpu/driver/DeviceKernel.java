package io.kvcache.gpu.driver;

/// A function that a device runs, of a [DeviceProgram].
///
/// @param name in the program
/// @param handle as the driver has it
public record DeviceKernel(String name, long handle) {}
