@NullMarked
package io.kvcache.planner.log;

import org.jspecify.annotations.NullMarked;
