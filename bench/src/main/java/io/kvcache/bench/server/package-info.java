/// Servers side by side on this machine, each in a process of its own, under one client: ours and redis-server, or
/// those of
/// two builds.
@NullMarked
package io.kvcache.bench.server;

import org.jspecify.annotations.NullMarked;
