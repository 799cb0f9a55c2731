import { h } from './dom.js';
import { serverNow } from './clock.js';

export const UNKNOWN = '–';

const WHOLE = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const ONE = new Intl.NumberFormat('en', { maximumFractionDigits: 1 });
const TWO = new Intl.NumberFormat('en', { maximumFractionDigits: 2 });
const SHORT = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });
const BYTE_UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

export function isKnown(value) {
  return value !== null && value !== undefined && Number.isFinite(value);
}

/** A count, such as `12,345`. */
export function count(value) {
  return isKnown(value) ? WHOLE.format(value) : UNKNOWN;
}

/** A count with its noun, such as `1 block` or `2 blocks`. */
export function counted(value, one, many = `${one}s`) {
  return `${count(value)} ${value === 1 ? one : many}`;
}

/** Uses of a prefix, which are counted in steps above 3. */
export function aboutUses(value) {
  return value > 3 ? `about ${count(value)}` : count(value);
}

/** A rate or a mean: decimals only where they tell something. */
export function decimal(value) {
  if (!isKnown(value)) {
    return UNKNOWN;
  }
  const size = Math.abs(value);
  return (size >= 100 ? WHOLE : size >= 10 ? ONE : TWO).format(value);
}

/** A large number in few characters, such as `31.5K`. */
export function compact(value) {
  return isKnown(value) ? (Math.abs(value) < 1000 ? decimal(value) : SHORT.format(value)) : UNKNOWN;
}

export function bytes(value) {
  if (!isKnown(value)) {
    return UNKNOWN;
  }
  let scaled = value;
  let unit = 0;
  while (Math.abs(scaled) >= 1024 && unit < BYTE_UNITS.length - 1) {
    scaled /= 1024;
    unit++;
  }
  return `${unit === 0 ? WHOLE.format(scaled) : decimal(scaled)} ${BYTE_UNITS[unit]}`;
}

/** A share between 0 and 1 as `12.3%`. */
export function percent(share) {
  if (!isKnown(share)) {
    return UNKNOWN;
  }
  const value = share * 100;
  return `${(value !== 0 && Math.abs(value) < 1 ? TWO : ONE).format(value)}%`;
}

/** A share, or unknown when there is nothing to share. */
export function ratio(part, whole) {
  return isKnown(part) && isKnown(whole) && whole > 0 ? part / whole : null;
}

export function micros(value) {
  if (!isKnown(value)) {
    return UNKNOWN;
  }
  if (value < 1000) {
    return `${(value < 10 ? ONE : WHOLE).format(value)} µs`;
  }
  return value < 1_000_000 ? `${decimal(value / 1000)} ms` : `${decimal(value / 1_000_000)} s`;
}

export function millis(value) {
  return isKnown(value) ? micros(value * 1000) : UNKNOWN;
}

/** A time span in its two largest units at most, such as `3 h 20 min`. */
export function duration(seconds) {
  if (!isKnown(seconds)) {
    return UNKNOWN;
  }
  const whole = Math.round(seconds);
  if (whole < 60) {
    return `${seconds > 0 && seconds < 10 && seconds !== whole ? ONE.format(seconds) : whole} s`;
  }
  if (whole < 3600) {
    return joinUnits(Math.floor(whole / 60), 'min', whole < 600 ? whole % 60 : 0, 's');
  }
  if (whole < 86_400) {
    return joinUnits(Math.floor(whole / 3600), 'h', Math.floor((whole % 3600) / 60), 'min');
  }
  return joinUnits(Math.floor(whole / 86_400), 'd', Math.floor((whole % 86_400) / 3600), 'h');
}

function joinUnits(large, largeUnit, small, smallUnit) {
  return small > 0 ? `${large} ${largeUnit} ${small} ${smallUnit}` : `${large} ${largeUnit}`;
}

/** A time span in whole ones of its largest unit, such as `3 h`: enough for an age, and calm. */
export function age(seconds) {
  const [unit, length] = seconds < 60 ? ['s', 1] : seconds < 3600 ? ['min', 60] : seconds < 86_400 ? ['h', 3600] : ['d', 86_400];
  return `${WHOLE.format(Math.floor(seconds / length))} ${unit}`;
}

/** Milliseconds since 1970 of a time as the server writes it: ISO 8601, or Unix seconds. */
export function toMillis(time) {
  if (time === null || time === undefined) {
    return NaN;
  }
  return typeof time === 'number' ? time * 1000 : Date.parse(time);
}

export function agoText(time) {
  const seconds = (serverNow() - toMillis(time)) / 1000;
  return Number.isNaN(seconds) ? UNKNOWN : seconds < 1 ? 'now' : `${age(seconds)} ago`;
}

/** An amount of money, in whatever currency the price was given in. */
export function money(value) {
  return isKnown(value) ? value.toLocaleString('en', { minimumFractionDigits: 2, maximumFractionDigits: 2 }) : UNKNOWN;
}

/** A time relative to now, which the page keeps up to date; the absolute one is in the title. */
export function ago(time) {
  const at = toMillis(time);
  if (Number.isNaN(at)) {
    return UNKNOWN;
  }
  return h('time', { dateTime: new Date(at).toISOString(), title: absolute(at), 'data-ago': '' }, agoText(time));
}

export function absolute(at) {
  const local = new Date(at);
  return `${local.toLocaleString('en-GB', { timeZoneName: 'short' })} (${local.toISOString()})`;
}

export function clockTime(at) {
  return new Date(at).toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' });
}

/** A detail of an error reply as a sentence. */
export function sentence(text) {
  const whole = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(whole) ? whole : `${whole}.`;
}

/** `allBytesWritten` as `All bytes written`. */
export function words(camelCase) {
  const text = camelCase.replace(/[_-]+/g, ' ').replace(/([a-z0-9])([A-Z])/g, '$1 $2').toLowerCase();
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** A number whose name tells its unit. */
export function byName(fieldName, value) {
  if (typeof value !== 'number') {
    return String(value);
  }
  if (/bytes/i.test(fieldName)) {
    return bytes(value);
  }
  if (/micros$/i.test(fieldName)) {
    return micros(value);
  }
  return Number.isInteger(value) ? count(value) : decimal(value);
}
