/// The laboratory: what policies get of the hits that are possible, over capacities, hints and
/// constants, and how much memory a hit ratio takes.
@NullMarked
package io.kvcache.planner.lab;

import org.jspecify.annotations.NullMarked;
