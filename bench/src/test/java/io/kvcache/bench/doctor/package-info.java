@NullMarked
package io.kvcache.bench.doctor;

import org.jspecify.annotations.NullMarked;
