package io.kvcache.gpu.driver;

/// A device for tests, and what they may do to it behind the driver's back.
public interface DeviceUnderTest {

    /// Opens it. Its memory is 64 MiB at least.
    DeviceDriver open();

    /// Whether [#hold] works: not on a real device.
    boolean canHold();

    /// From now on nothing is done that streams are given.
    void hold();

    /// Ends that.
    void release();

    /// What is still taken after a driver was closed, in a word; empty when nothing is.
    String left();
}
