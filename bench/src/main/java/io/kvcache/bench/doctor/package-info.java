/// What a machine has of what KVCache uses, and what to do about what it lacks.
///
/// [io.kvcache.bench.doctor.Checkup] asks for all of it; a fact is one line for people. Nothing here changes anything.
@NullMarked
package io.kvcache.bench.doctor;

import org.jspecify.annotations.NullMarked;
