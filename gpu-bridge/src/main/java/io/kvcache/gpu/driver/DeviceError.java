package io.kvcache.gpu.driver;

/// Failures that a device's driver reports, with advice for the operator.
public enum DeviceError {
    /// There is no driver on this machine, or it is too old for a call.
    NO_DRIVER(true, "install NVIDIA's driver, and have libcuda.so.1 where the loader looks"),
    /// There is a driver and not this device.
    NO_DEVICE(true, "check nvidia-smi, and what the container is lent"),
    /// Less memory is free than was asked for.
    OUT_OF_MEMORY(false, "ask for less, or have the engine leave more of the device's memory"),
    /// An argument is wrong: a span that is not all of one allocation, a handle that is closed.
    BAD_REQUEST(false, "a bug of the caller's"),
    /// The device, or its driver, cannot do it.
    NOT_SUPPORTED(false, "a newer driver may do it"),
    /// The operating system forbids it.
    NOT_PERMITTED(false, "check the rights of the container, and the limit on locked memory"),
    /// The device is there, and its system is not up.
    NOT_UP(true, "where devices are joined by NVSwitch, see systemctl status nvidia-fabricmanager"),
    /// Memory or an event of another process that is gone, or that this device has no way to.
    NOT_REACHABLE(false, "see that the other process lives and has the same device, and share anew"),
    /// Host memory that is registered already, or overlaps what is.
    ALREADY_REGISTERED(false, "a bug of the caller's"),
    /// Host memory that was not registered.
    NOT_REGISTERED(false, "a bug of the caller's"),
    /// Device code that this driver does not take.
    BAD_CODE(false, "the driver is too old for the code, or the code is damaged"),
    /// Memory of the device is damaged, as its own checks found.
    MEMORY_DAMAGED(true, "see nvidia-smi -q -d ECC, and reset the device"),
    /// Something that ran on the device touched memory that it may not; what else is there is in doubt.
    ILLEGAL_ACCESS(
            true, "a bug, here or in other code of the same process, which gets the device back when it restarts"),
    /// The device is gone: fallen off the bus, reset, or taken away.
    DEVICE_LOST(true, "see dmesg for Xid"),
    /// Anything else, of a thing that is only tried: what was asked for is not there, all else goes on.
    REFUSED(false, "see the driver's own name for it"),
    /// Anything else.
    OTHER(true, "see the driver's own name for it");

    private final boolean fatal;
    private final String advice;

    DeviceError(boolean ends, String advice) {
        this.fatal = ends;
        this.advice = advice;
    }

    /// Returns whether the device is unusable until it is opened again.
    public boolean isFatal() {
        return fatal;
    }

    /// Returns advice for the operator.
    public String advice() {
        return advice;
    }
}
