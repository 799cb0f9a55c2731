import { field, select } from './dom.js';
import { duration } from './format.js';

const SPANS = [5, 15, 60, 240, 720, 1440];
const DEFAULT_MINUTES = 60;

/** The minutes that a link asks for. */
export function minutesOf(parameters) {
  const minutes = Number(parameters.minutes);
  return Number.isInteger(minutes) && minutes > 0 ? minutes : DEFAULT_MINUTES;
}

/** A choice of time span, up to what the server keeps. */
export function spanSelect({ server, parameters, go }) {
  const kept = (server.historyKeptSeconds ?? 14_400) / 60;
  const chosen = minutesOf(parameters);
  const spans = [...new Set([...SPANS.filter((each) => each <= kept), chosen])].sort((a, b) => a - b);
  return field('Last', select('minutes', spans.map((each) => [String(each), duration(each * 60)]), String(chosen),
    (minutes) => go({ minutes })));
}

/** A choice of tenant, for those who may see more than one. */
export function tenantSelect({ server, parameters, go }, changed = {}) {
  const tenants = server.tenants ?? [];
  const chosen = parameters.tenant ?? '';
  if (!server.administrator || (tenants.length < 2 && chosen === '')) {
    return null;
  }
  const offered = tenants.includes(chosen) || chosen === '' ? tenants : [...tenants, chosen];
  return field('Tenant', select('tenant', [['', 'all'], ...offered.map((each) => [each, each])], chosen,
    (tenant) => go({ ...changed, tenant })));
}
