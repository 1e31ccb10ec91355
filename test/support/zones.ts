import { randomFrom } from './seed.js';

/** Zones whose clocks do what few do: skip a day, go back over midnight, change by half an hour, skip midnight. */
export const ODD_ZONES = [
  'UTC',
  'America/New_York',
  'America/Sao_Paulo',
  'America/St_Johns',
  'America/Juneau',
  'Australia/Lord_Howe',
  'Pacific/Apia',
  'Pacific/Kwajalein',
  'Asia/Manila',
  'Asia/Kathmandu',
  'Africa/Monrovia',
] as const;

/** The odd zones and `count` of all the others that this process has data for, the same for the same seed. */
export function someZones(count: number, seed: number): string[] {
  const random = randomFrom(seed);
  const others = Intl.supportedValuesOf('timeZone').filter((zone) => !ODD_ZONES.some((odd) => odd === zone));
  const drawn = Array.from({ length: count }, () => others[Math.floor(random() * others.length)] ?? 'UTC');
  return [...new Set([...ODD_ZONES, ...drawn])];
}
