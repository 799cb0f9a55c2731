/// Runs the examples of README.md and docs as written.
@org.jspecify.annotations.NullMarked
package io.kvcache.server.readme;
