/// Engines' pools of every layout, copied from and to, and compared with a loop that reads like the
/// layout's definition.
@NullMarked
package io.kvcache.gpu.paging;

import org.jspecify.annotations.NullMarked;
