/// Tests of reading, generating and finding traces.
@NullMarked
package io.kvcache.bench.trace;

import org.jspecify.annotations.NullMarked;
