package io.kvcache.gpu.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceDriver.ResourceCounts;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

/// Opens drivers for those who close them by themselves, and looks at what each still has when it
/// is about to be closed: all of that is given back with it, so nobody would see afterwards that
/// its user forgot it.
///
/// What a driver has that says its device is of no use is not looked at: that can only go with it.
public final class LeakCheckingDrivers {

    private final FakeCuda fakeCuda;
    private final List<String> leaks = new CopyOnWriteArrayList<>();

    /// Of this stand-in's first device.
    public LeakCheckingDrivers(FakeCuda fakeCuda) {
        this.fakeCuda = fakeCuda;
    }

    /// Opens one.
    public DeviceDriver open() {
        CudaDriver driver = (CudaDriver) fakeCuda.open();
        return (DeviceDriver) Proxy.newProxyInstance(
                DeviceDriver.class.getClassLoader(), new Class<?>[] {DeviceDriver.class}, (_, called, arguments) -> {
                    if (called.getName().equals("close")) {
                        checkBeforeClose(driver);
                    }
                    try {
                        return called.invoke(driver, arguments);
                    } catch (InvocationTargetException thrown) {
                        throw thrown.getCause();
                    }
                });
    }

    private void checkBeforeClose(CudaDriver driver) {
        if (!driver.isLost() && !driver.resourceCounts().equals(ResourceCounts.NONE)) {
            leaks.add(driver.resourceCounts() + ", after a fault at " + fakeCuda.injectedAt());
        }
    }

    /// All that were closed by now had been given everything back.
    public void requireNoLeaks() {
        assertThat(leaks).as("left in drivers that were closed").isEmpty();
    }
}
