/// Tests of the event log.
@NullMarked
package io.kvcache.core.event;

import org.jspecify.annotations.NullMarked;
