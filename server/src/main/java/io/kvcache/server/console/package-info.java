/// What the server tells its operators and tenants beside metrics: the course of the load, why look-ups
/// missed, the tree of shared prefixes, what more memory would bring, settings in force. As JSON, and as
/// the console, a set of pages that show it in a browser.
///
/// [io.kvcache.server.console.ConsoleEndpoint] answers the requests;
/// [io.kvcache.server.console.LoadHistory] keeps the last hours; [io.kvcache.server.http.Viewer] says
/// who sees what.
///
/// May not import front ends of values and blocks other than by their statistics.
@NullMarked
package io.kvcache.server.console;

import org.jspecify.annotations.NullMarked;
