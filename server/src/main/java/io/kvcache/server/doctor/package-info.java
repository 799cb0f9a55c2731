/// What a machine has of what KVCache uses, and what to do about what it lacks.
///
/// [io.kvcache.server.doctor.SystemCheck] asks for all of it; a fact is one line for people. Nothing here changes
/// anything.
@NullMarked
package io.kvcache.server.doctor;

import org.jspecify.annotations.NullMarked;
