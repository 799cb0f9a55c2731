/// A device as the bridge sees it: memory, streams, events and copies, whatever stands behind them.
///
/// [io.kvcache.gpu.driver.DeviceDriver] is what there is to implement; `io.kvcache.gpu.host` does it in
/// plain Java, `io.kvcache.gpu.cuda` over NVIDIA's driver. What goes wrong is a
/// [io.kvcache.gpu.driver.DeviceError] with a name.
///
/// May import the JDK only.
@NullMarked
package io.kvcache.gpu.driver;

import org.jspecify.annotations.NullMarked;
