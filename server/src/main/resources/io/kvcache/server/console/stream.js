import { connection } from './connection.js';

// Server-sent events, only while the tab is visible: a hidden tab would keep one of the server's few places for viewers.

const RETRY_MILLIS = 30_000;

/**
 * Follows a stream of events.
 *
 * @param address returns the address, which may depend on what was received before
 * @param names of the events wanted
 * @param onEvent is given the name, the data and the id
 * @param onState is told `open`, `connecting` or `closed`, as it changes
 */
export function stream({ address, names, onEvent, onState, signal }) {
  let source = null;
  let timer = 0;
  let stopped = false;

  function open() {
    clearTimeout(timer);
    if (source !== null || stopped || document.hidden || signal.aborted) {
      return;
    }
    onState('connecting');
    const opened = new EventSource(address());
    source = opened;
    opened.onopen = () => onState('open');
    opened.onerror = () => {
      // The browser does not tell why. It would try again at once after a lost connection, but never after an error
      // reply; a pause of our own serves both.
      close();
      onState('closed');
      timer = setTimeout(open, RETRY_MILLIS);
    };
    for (const name of names) {
      opened.addEventListener(name, (event) => {
        if (source === opened) {
          connection.succeeded();
          onEvent(name, parse(event.data), event.lastEventId);
        }
      });
    }
  }

  function close() {
    clearTimeout(timer);
    source?.close();
    source = null;
  }

  function onVisibility() {
    if (document.hidden) {
      close();
    } else {
      open();
    }
  }

  document.addEventListener('visibilitychange', onVisibility, { signal });
  connection.onChange(() => {
    if (connection.cause === '') {
      open(); // a request was answered again, so the stream need not wait any longer
    }
  }, signal);
  signal.addEventListener('abort', close);
  open();
  return {
    /** Ends the stream until `resume`. */
    stop() {
      stopped = true;
      close();
    },
    resume() {
      stopped = false;
      open();
    },
  };
}

function parse(data) {
  try {
    return JSON.parse(data);
  } catch {
    return null;
  }
}
