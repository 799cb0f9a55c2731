/// Other programs, run for what they print.
@NullMarked
package io.kvcache.bench.program;

import org.jspecify.annotations.NullMarked;
