/// Tests of calibrating and checking.
@NullMarked
package io.kvcache.planner.serving;

import org.jspecify.annotations.NullMarked;
