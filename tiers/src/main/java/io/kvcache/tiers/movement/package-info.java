/// Movement of blocks between host memory and the tiers below it: offload, onboard, flush, outage.
///
/// [io.kvcache.tiers.movement.TierScheduler] is its face, [io.kvcache.tiers.movement.TierWorker] does the
/// work tick by tick, [io.kvcache.tiers.movement.TierThreads] puts a thread around each. May import
/// core, HdrHistogram and the JDK only.
@NullMarked
package io.kvcache.tiers.movement;

import org.jspecify.annotations.NullMarked;
