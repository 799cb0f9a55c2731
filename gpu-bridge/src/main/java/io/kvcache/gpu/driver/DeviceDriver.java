package io.kvcache.gpu.driver;

import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/// One device, opened: its memory, and the streams that move bytes to and from it.
///
/// **Ownership.** The caller frees what it allocates, unregisters what it registers and closes what it opens; the
/// driver is closed last.
///
/// **Threads.** One at a time, and never a virtual one. A device's context belongs to a thread: when
/// another thread calls, it takes the device over, and the two see to it that they do not call at once.
///
/// **Errors.** The driver's failures are a [DeviceException] with a name. After one that [DeviceError#isFatal],
/// there is nothing left but to close.
public interface DeviceDriver extends AutoCloseable {

    /// Kind of work that a stream is for.
    enum Priority {
        /// As any other.
        NORMAL,
        /// Before what an engine computes, where the device can: copies that a caller waits for.
        HIGH
    }

    /// Returns the properties of the device.
    DeviceInfo info();

    /// Bytes of its memory that are free.
    long freeMemoryBytes();

    /// Takes memory; what is in it is undefined.
    ///
    /// @param bytes 1 and up
    DeviceSpan allocate(long bytes);

    /// Gives back what [#allocate] gave, after waiting for what is on its way.
    ///
    /// @throws DeviceException with [DeviceError#BAD_REQUEST] for a span that is not allocated
    void free(DeviceSpan span);

    /// Makes known memory of the device that another library in this process has allocated, as an engine
    /// its pool, so that it can be copied from and to. It stays the other's, and must stay there until it
    /// is disowned.
    ///
    /// @throws DeviceException with [DeviceError#BAD_REQUEST] of a device that knows better
    void adopt(DeviceSpan span);

    /// Ends that.
    ///
    /// @throws DeviceException with [DeviceError#BAD_REQUEST] for a span that was not adopted
    void disown(DeviceSpan span);

    /// Fixes host memory in place and tells the device of it, so that copies need no detour. One copy
    /// never crosses the border of two registrations, which the driver sees to. Several drivers of a device
    /// may register the same memory: it stays registered until the last has ended that.
    ///
    /// @param host native memory that stays until it is unregistered
    void register(MemorySegment host);

    /// Registers host memory where the machine allows it: containers often limit how much may be fixed in place. Copies
    /// go without as well, slower.
    ///
    /// @return null when the memory is registered now, else why it is not
    /// @throws DeviceException when the device is of no use any more
    default @Nullable DeviceException tryRegister(MemorySegment host) {
        try {
            register(host);
            return null;
        } catch (DeviceException refused) {
            if (refused.error().isFatal()) {
                throw refused;
            }
            return refused;
        }
    }

    /// Returns whether code of the device reads and writes this host memory by its own address: all of it is
    /// registered with this driver, and the device knows the addresses of the process.
    boolean isReachable(MemorySegment host);

    /// Ends a registration, while nothing is on its way there.
    void unregister(MemorySegment host);

    /// Opens a stream.
    DeviceStream openStream(Priority priority);

    /// Loads code.
    ///
    /// @param code PTX; the driver compiles it for the device
    /// @throws DeviceException with [DeviceError#BAD_CODE] when the driver does not take it, and with
    ///     [DeviceError#NOT_SUPPORTED] of a device that runs none
    DeviceProgram load(String code);

    /// Makes an event.
    DeviceEvent openEvent();

    /// Memory that grows where it is.
    ///
    /// @throws DeviceException with [DeviceError#NOT_SUPPORTED] of a device that has none
    VirtualMemory virtualMemory();

    /// Memory and events that other processes use too.
    ///
    /// @throws DeviceException with [DeviceError#NOT_SUPPORTED] of a device that cannot share
    DeviceIpc ipc();

    /// Returns the resources that were acquired and not released.
    ResourceCounts resourceCounts();

    /// Lets go of the device, and of all that was not given back.
    ///
    /// @throws IllegalStateException when something was not given back, which it
    ///     names; a second close does nothing; a device that failed is closed with all that it has
    @Override
    void close();

    /// Properties of a device.
    ///
    /// @param name as its maker calls it
    /// @param uuid that tells it from others whatever their order, in hexadecimal; empty when it has none
    /// @param totalBytes of its memory
    /// @param capability compute capability, as `9.0`; empty of what is none
    /// @param driver which driver, with its version
    public record DeviceInfo(String name, String uuid, long totalBytes, String capability, String driver) {}

    /// Resources of a device that were acquired and not released yet.
    ///
    /// @param slabs allocations
    /// @param slabBytes their bytes
    /// @param registrations of host memory
    /// @param virtual ranges, mappings and pages of [VirtualMemory]
    /// @param opened memory of other processes, see [DeviceIpc]
    public record ResourceCounts(
            int slabs,
            long slabBytes,
            int registrations,
            int streams,
            int events,
            int programs,
            int virtual,
            int opened) {

        /// Nothing.
        public static final ResourceCounts NONE = new ResourceCounts(0, 0, 0, 0, 0, 0, 0, 0);
    }
}
