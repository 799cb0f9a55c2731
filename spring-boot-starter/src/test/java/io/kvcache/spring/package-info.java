/// Tests of the Spring Boot starter, in real application contexts.
@NullMarked
package io.kvcache.spring;

import org.jspecify.annotations.NullMarked;
