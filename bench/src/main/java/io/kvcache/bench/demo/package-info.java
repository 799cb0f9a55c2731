/// The demo: one request trace through the store, and what that would mean for a real deployment.
@NullMarked
package io.kvcache.bench.demo;

import org.jspecify.annotations.NullMarked;
