/// Growing spans against a model, over the stand-in for NVIDIA's driver.
@NullMarked
package io.kvcache.gpu.growth;

import org.jspecify.annotations.NullMarked;
