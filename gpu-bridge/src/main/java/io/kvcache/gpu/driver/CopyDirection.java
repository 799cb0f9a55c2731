package io.kvcache.gpu.driver;

/// Where the bytes of a [CopyBatch] go.
public enum CopyDirection {
    /// From host memory to the device.
    TO_DEVICE,
    /// From the device to host memory.
    TO_HOST,
    /// From the device to itself.
    WITHIN
}
