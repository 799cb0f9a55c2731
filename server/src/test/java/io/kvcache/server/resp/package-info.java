@NullMarked
package io.kvcache.server.resp;

import org.jspecify.annotations.NullMarked;
