@NullMarked
package io.kvcache.server.keyspace;

import org.jspecify.annotations.NullMarked;
