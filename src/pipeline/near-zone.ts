import { nearestNames } from './nearest-name.js';

/** `. Did you mean Europe/Vienna?`: the time zone most like a misspelt one, by its whole name or its city; else empty. */
export function nearZone(given: unknown): string {
  if (typeof given !== 'string') return '';
  const zones = ['UTC', ...Intl.supportedValuesOf('timeZone')];
  const city = (zone: string): string => zone.slice(zone.lastIndexOf('/') + 1);
  const [nearest] = nearestNames(given, zones);
  const [nearestCity] = nearest === undefined ? nearestNames(city(given), zones.map(city)) : [];
  const zone = nearest ?? zones.find((name) => city(name) === nearestCity);
  return zone === undefined ? '' : `. Did you mean ${zone}?`;
}
