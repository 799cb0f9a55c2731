package io.kvcache.gpu.driver;

import java.util.ArrayList;
import java.util.List;

/// What a kernel is called with, in its order.
///
/// Nothing checks these against the kernel, and a wrong one has the device read or write anywhere: so
/// kernels are called by the one class that knows them.
public final class KernelArguments {

    private final List<Value> values = new ArrayList<>();

    /// An argument.
    ///
    /// @param bits of it, in the lowest bytes
    /// @param bytes of it, 4 or 8
    public record Value(long bits, int bytes) {}

    /// A place on the device.
    public KernelArguments with(DeviceAddress address) {
        values.add(new Value(address.value(), Long.BYTES));
        return this;
    }

    /// A 64-bit number.
    public KernelArguments with(long number) {
        values.add(new Value(number, Long.BYTES));
        return this;
    }

    /// A 32-bit number.
    public KernelArguments withInt(int number) {
        values.add(new Value(number, Integer.BYTES));
        return this;
    }

    /// All of them.
    public List<Value> values() {
        return values;
    }
}
