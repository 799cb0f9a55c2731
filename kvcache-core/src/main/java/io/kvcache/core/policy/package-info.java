/// Which block to give up next: [io.kvcache.core.policy.EvictionPolicy] and one class an algorithm.
///
/// A policy sees record numbers and a [io.kvcache.core.policy.RecordView]; it may import nothing else of the store.
@NullMarked
package io.kvcache.core.policy;

import org.jspecify.annotations.NullMarked;
