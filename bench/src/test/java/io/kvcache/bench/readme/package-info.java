/// What README.md shows, tried as written.
@org.jspecify.annotations.NullMarked
package io.kvcache.bench.readme;
