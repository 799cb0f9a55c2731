/// Tests of the laboratory.
@NullMarked
package io.kvcache.planner.lab;

import org.jspecify.annotations.NullMarked;
