@NullMarked
package io.kvcache.server.http;

import org.jspecify.annotations.NullMarked;
