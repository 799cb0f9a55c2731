package io.kvcache.gpu.driver;

import io.kvcache.gpu.driver.DeviceProgram.DeviceKernel;
import java.lang.foreign.MemorySegment;

/// A queue of work for a device: what is given to it is done in order, later, beside what other streams
/// do.
///
/// Every method returns once the work is queued. Host memory that is given is native, may be used by any
/// thread, and stays there and untouched until an event that was recorded after it is reached: the device
/// reads and writes it when it gets to it. Memory that was registered travels fastest; other memory works
/// as well.
///
/// **Threads.** The driver's.
///
/// **Errors.** [IllegalArgumentException] for host memory of a wrong kind, [DeviceException] for what the
/// driver refuses. What fails later makes every further call fail, and no event be reached.
public interface DeviceStream extends AutoCloseable {

    /// Copies all of `from` to the device.
    void copyToDevice(MemorySegment from, DeviceAddress to);

    /// Copies from the device until `to` is full.
    void copyToHost(DeviceAddress from, MemorySegment to);

    /// Copies within the device, between places that do not overlap.
    void copyWithinDevice(DeviceAddress from, DeviceAddress to, long bytes);

    /// Copies all that a batch holds, in one call where the driver has one. Its copies have no order
    /// among themselves; the batch may be changed afterwards.
    void copy(CopyBatch batch);

    /// Sets all bytes of a span.
    void fill(DeviceSpan span, byte value);

    /// Runs a kernel.
    ///
    /// @param groups of threads, 1 and up
    /// @param threads of a group, 1 to 1,024
    /// @param arguments of the kernel in their order, numbers of 32 bits in the lower half. Nothing checks
    ///     them, and a wrong one makes the device access any memory: only the class that knows a kernel calls it
    void launch(DeviceKernel kernel, int groups, int threads, long... arguments);

    /// Puts the event behind what was given by now.
    void record(DeviceEvent event);

    /// Has what is given from now on wait until the event is reached, where it was put last by now.
    void waitFor(DeviceEvent event);

    /// Returns whether all work of the stream is done.
    ///
    /// @throws DeviceException when something failed
    boolean isIdle();

    /// Gives the stream back. What is on its way goes on, and its memory must stay until that has ended.
    ///
    /// A second close does nothing.
    @Override
    void close();
}
