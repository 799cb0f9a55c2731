import { connection } from './connection.js';

const TIMEOUT_MILLIS = 15_000;

/** A reply that reports an error, or no reply at all. */
export class ApiError extends Error {
  /** @param status of the reply; 0 when there was none */
  constructor(status, type, detail) {
    super(detail);
    this.status = status;
    this.type = type;
  }

  get isUnreachable() {
    return this.status === 0 || this.status === 502 || this.status === 504;
  }

  isType(ending) {
    return this.type.endsWith(ending);
  }
}

/** The address of an endpoint; parameters without a value are left out. */
export function url(path, parameters = {}) {
  const query = new URLSearchParams(
    Object.entries(parameters).filter(([, value]) => value !== null && value !== undefined && value !== ''));
  const text = query.toString();
  const address = new URL(`../v1/${path}${text ? `?${text}` : ''}`, location.href);
  address.username = ''; // a page that was opened with a password in its address may not ask with one
  address.password = '';
  return address.href;
}

/** Requests JSON. Rejects with an ApiError, or with the signal's reason when the page was left. */
export async function request(path, { method = 'GET', parameters, signal } = {}) {
  const timeout = AbortSignal.timeout(TIMEOUT_MILLIS);
  let response;
  let body;
  try {
    response = await fetch(url(path, parameters), {
      method,
      signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
      cache: 'no-store',
      headers: { Accept: 'application/json' },
    });
    body = await response.text();
  } catch (failure) {
    if (signal?.aborted) {
      throw failure;
    }
    const detail = failure.name === 'TimeoutError'
      ? `The server did not answer within ${TIMEOUT_MILLIS / 1000} seconds.`
      : 'The server is unreachable.';
    throw reported(new ApiError(0, '', detail));
  }
  if (!response.ok) {
    throw reported(problem(response, body));
  }
  connection.succeeded();
  try {
    return body.trim() === '' ? null : JSON.parse(body);
  } catch {
    throw new ApiError(response.status, '', 'The reply is not JSON. A proxy may have answered in place of the server.');
  }
}

function reported(error) {
  if (error.isUnreachable) {
    connection.failed(error.message);
  } else {
    connection.succeeded();
  }
  return error;
}

function problem(response, body) {
  try {
    const { type = '', title = '', detail = '' } = JSON.parse(body);
    return new ApiError(response.status, String(type), String(detail || title || `status ${response.status}`));
  } catch {
    return new ApiError(response.status, '', `The server answered ${response.status} ${response.statusText}`.trim() + '.');
  }
}
