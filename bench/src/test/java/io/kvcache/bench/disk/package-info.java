/// Tests of what the disk suite runs, without fio.
@NullMarked
package io.kvcache.bench.disk;

import org.jspecify.annotations.NullMarked;
