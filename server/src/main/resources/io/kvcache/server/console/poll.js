import { ApiError } from './api.js';

const FIRST_RETRY_SECONDS = 1;
const MAX_RETRY_SECONDS = 30;
const polls = new Set();

/**
 * Loads again and again while the tab is visible, and with growing pauses while the server does not answer.
 *
 * @param load returns a promise of the data
 * @param everySeconds pause between loads; 0 to load once, and again only after failures and by `now()`
 */
export function poll(load, { everySeconds, onData, onError, signal }) {
  let timer = 0;
  let retrySeconds = FIRST_RETRY_SECONDS;
  let running = false;
  let wanted = true;
  let paused = false;

  async function now() {
    cancel();
    paused = false;
    wanted = true;
    if (running || document.hidden || signal.aborted) {
      return;
    }
    running = true;
    wanted = false;
    try {
      const data = await load();
      if (!signal.aborted) {
        retrySeconds = FIRST_RETRY_SECONDS;
        onData(data);
        schedule(everySeconds);
      }
    } catch (error) {
      if (signal.aborted) {
        return;
      }
      onError(error);
      if (error instanceof ApiError && !error.isUnreachable && error.status < 500) {
        schedule(everySeconds > 0 ? MAX_RETRY_SECONDS : 0); // asking again soon would get the same answer
      } else {
        schedule(retrySeconds);
        retrySeconds = Math.min(2 * retrySeconds, MAX_RETRY_SECONDS);
      }
    } finally {
      running = false;
      if (wanted) {
        now();
      }
    }
  }

  function schedule(seconds) {
    if (seconds > 0 && !paused) {
      handle.dueAt = Date.now() + seconds * 1000;
      wanted = false;
      timer = setTimeout(now, seconds * 1000);
    }
  }

  function onVisibility() {
    if (document.hidden) {
      wanted ||= handle.dueAt !== null;
      cancel();
    } else if (wanted) {
      now();
    }
  }

  function cancel() {
    clearTimeout(timer);
    handle.dueAt = null;
  }

  const handle = {
    /** Loads at once, and then goes on as before. */
    now,
    /** Loads no more until `now()`. */
    pause() {
      paused = true;
      wanted = false;
      cancel();
    },
    /** When the next load is due, by this computer's clock; null when none is. */
    dueAt: null,
    get isPaused() {
      return paused;
    },
  };
  polls.add(handle);
  document.addEventListener('visibilitychange', onVisibility, { signal });
  signal.addEventListener('abort', () => {
    cancel();
    polls.delete(handle);
  });
  now();
  return handle;
}

/** Loads everything that the page shows at once. */
export function pollAllNow() {
  [...polls].filter((each) => !each.isPaused).forEach((each) => each.now());
}

/** Seconds until the next try; null when none is planned. */
export function secondsToNextTry() {
  const due = [...polls].map((each) => each.dueAt).filter((each) => each !== null);
  return due.length === 0 ? null : Math.max(0, Math.round((Math.min(...due) - Date.now()) / 1000));
}
