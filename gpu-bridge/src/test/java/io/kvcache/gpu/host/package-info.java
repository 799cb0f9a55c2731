/// The device in plain Java under the contract of all devices.
@NullMarked
package io.kvcache.gpu.host;

import org.jspecify.annotations.NullMarked;
