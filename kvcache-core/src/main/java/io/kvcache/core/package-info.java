/// The public face of a KV-cache store: what an inference server calls, whichever implementation stands behind it.
///
/// Depends on the JDK and JSpecify only. Nothing in core opens a file or a socket, starts a thread or reads a
/// clock.
@NullMarked
package io.kvcache.core;

import org.jspecify.annotations.NullMarked;
