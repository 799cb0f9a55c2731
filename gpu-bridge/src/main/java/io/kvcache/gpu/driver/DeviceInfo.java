package io.kvcache.gpu.driver;

/// What a device is.
///
/// @param name as its maker calls it
/// @param uuid that tells it from others whatever their order, in hexadecimal; empty when it has none
/// @param totalBytes of its memory
/// @param capability compute capability, as `9.0`; empty of what is none
/// @param driver which driver, with its version
public record DeviceInfo(String name, String uuid, long totalBytes, String capability, String driver) {}
