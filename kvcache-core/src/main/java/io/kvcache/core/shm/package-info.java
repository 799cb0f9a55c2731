/// Memory of a store that other processes on the same host map: to read blocks in place, and to stage what they put.
@NullMarked
package io.kvcache.core.shm;

import org.jspecify.annotations.NullMarked;
