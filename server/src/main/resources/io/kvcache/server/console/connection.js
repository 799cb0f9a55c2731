// Whether the server answers. One place for all pages, so that there is one banner.

const listeners = new Set();

export const connection = {
  /** Why the last request got no answer; empty while the server answers. */
  cause: '',
  /** When it last answered, by this computer's clock. */
  answeredAt: Date.now(),

  succeeded() {
    this.answeredAt = Date.now();
    if (this.cause !== '') {
      this.cause = '';
      notify();
    }
  },

  failed(cause) {
    if (this.cause !== cause) {
      this.cause = cause;
      notify();
    }
  },

  /** @param signal ends the listening; none for as long as the page lives */
  onChange(listener, signal) {
    listeners.add(listener);
    signal?.addEventListener('abort', () => listeners.delete(listener));
  },
};

function notify() {
  listeners.forEach((listener) => listener());
}
