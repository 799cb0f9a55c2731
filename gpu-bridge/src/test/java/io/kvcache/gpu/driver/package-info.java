/// What every device driver must do, and the parts that they share.
@NullMarked
package io.kvcache.gpu.driver;

import org.jspecify.annotations.NullMarked;
