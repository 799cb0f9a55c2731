package io.kvcache.core;

import java.util.List;

/// Describes the devices that an optional module can use, such as GPUs.
///
/// `kvcache doctor` finds implementations with [java.util.ServiceLoader], so the command line depends on no such
/// module. A provider is a public class with a public constructor without parameters, named in
/// `META-INF/services/io.kvcache.core.DeviceProbe`.
public interface DeviceProbe {

    /// Describes each device in one line: what it is, and what it can do.
    ///
    /// The call may take seconds, as it may measure copies. It leaves nothing behind on a device.
    ///
    /// @return one line per device, or a single line that says why no device can be used; never empty
    List<String> describeDevices();
}
