/// Tests of the replay: published reference values, and naive models of the convention.
@NullMarked
package io.kvcache.planner.replay;

import org.jspecify.annotations.NullMarked;
