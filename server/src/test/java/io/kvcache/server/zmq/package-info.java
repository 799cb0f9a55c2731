@NullMarked
package io.kvcache.server.zmq;

import org.jspecify.annotations.NullMarked;
