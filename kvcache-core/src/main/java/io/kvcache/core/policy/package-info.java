/// Choice of the next block to evict: [io.kvcache.core.policy.EvictionPolicy] and one class for each algorithm.
///
/// A policy sees record numbers and a [io.kvcache.core.policy.RecordView]; it may import nothing else of the store.
@NullMarked
package io.kvcache.core.policy;

import org.jspecify.annotations.NullMarked;
