/// Servers side by side on this machine: ours and redis-server, each in a process of its own, under one client.
@NullMarked
package io.kvcache.bench.server;

import org.jspecify.annotations.NullMarked;
