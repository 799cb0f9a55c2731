/// What the module tells of the devices it finds.
@NullMarked
package io.kvcache.gpu;

import org.jspecify.annotations.NullMarked;
