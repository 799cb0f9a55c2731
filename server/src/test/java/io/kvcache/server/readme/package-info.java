/// What README.md and docs show, tried as written.
@org.jspecify.annotations.NullMarked
package io.kvcache.server.readme;
