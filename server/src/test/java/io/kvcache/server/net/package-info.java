@NullMarked
package io.kvcache.server.net;

import org.jspecify.annotations.NullMarked;
