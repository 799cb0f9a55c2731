package io.kvcache.gpu.driver;

/// Code that a device has loaded.
///
/// **Ownership.** The caller closes it, once nothing of it runs any more.
///
/// **Threads.** The driver's.
public interface DeviceProgram extends AutoCloseable {

    /// A function of it.
    ///
    /// @throws DeviceException with [DeviceError#BAD_REQUEST] when it has none of that name
    DeviceKernel kernel(String name);

    /// Unloads it.
    ///
    /// A second close does nothing.
    @Override
    void close();

    /// A function that a device runs, of a [DeviceProgram].
    ///
    /// @param name in the program
    /// @param handle as the driver has it
    public record DeviceKernel(String name, long handle) {}
}
