@NullMarked
package io.kvcache.server.config;

import org.jspecify.annotations.NullMarked;
