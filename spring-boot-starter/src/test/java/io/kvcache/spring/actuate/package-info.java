/// Tests of health, metrics and endpoint, over HTTP.
@NullMarked
package io.kvcache.spring.actuate;

import org.jspecify.annotations.NullMarked;
