/// What an application with Spring Boot's actuator shows of its cache: health, metrics and the endpoint `kvcache`.
///
/// May import `io.kvcache.core`, `io.kvcache.tiers`, `io.kvcache.transport`, `io.kvcache.spring`, Spring Boot and
/// Micrometer. Each part is there only where its libraries are.
@NullMarked
package io.kvcache.spring.actuate;

import org.jspecify.annotations.NullMarked;
