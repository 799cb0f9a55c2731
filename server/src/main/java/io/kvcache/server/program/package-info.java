/// Other programs, run for what they print.
@NullMarked
package io.kvcache.server.program;

import org.jspecify.annotations.NullMarked;
