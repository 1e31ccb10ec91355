/** A type as far as it decides what a cast loses. */
export interface CastType {
  /** Its own name, below domains, without a schema: `int4`, `_numeric` for an array. */
  readonly name: string;
  /** As PostgreSQL writes it: `numeric(12,2)`, `timestamp(0) with time zone`. */
  readonly text: string;
}

const WHOLE = ['int2', 'int4', 'int8'];
const FLOATS = ['float4', 'float8'];
const TIMES = ['timestamp', 'timestamptz'];
/** Digits after the second where a type does not say. */
const MICROSECONDS = 6;

/**
 * What a cast that an INSERT makes by itself can lose without an error, as half a sentence; undefined where it loses nothing, or where the
 * type of the source does not say enough: a numeric without a scale, such as a sum's, may fit. What is too large or too long is
 * no loss, since it fails, except where it is known to be so by the declared lengths.
 */
export function loss(from: CastType, to: CastType): string | undefined {
  if (from.name.startsWith('_') && to.name.startsWith('_'))
    return lossOfOne({ ...from, name: from.name.slice(1) }, { ...to, name: to.name.slice(1) });
  return lossOfOne(from, to);
}

function lossOfOne(from: CastType, to: CastType): string | undefined {
  const pair = `${from.name} ${to.name}`;
  const named = LOSSES[pair];
  if (named) return named;
  if (['numeric', ...FLOATS].includes(from.name) && WHOLE.includes(to.name)) return 'rounds to whole numbers';
  if (from.name === 'numeric' && to.name === 'numeric') return fewerPlaces(from, to);
  if (FLOATS.includes(from.name) && to.name === 'numeric')
    return `keeps ${from.name === 'float4' ? 6 : 15} significant digits${scaleOf(to) === undefined ? '' : `, and rounds to ${places(scaleOf(to) ?? 0)}`}`;
  if (['varchar', 'bpchar'].includes(from.name) && ['varchar', 'bpchar'].includes(to.name)) return shorter(from, to);
  if ([...TIMES, 'time', 'timetz', 'interval'].includes(from.name) && from.name === to.name) return coarser(from, to);
  return undefined;
}

const TIME_OF_DAY = 'drops the time of day';
const LOSSES: Readonly<Record<string, string>> = {
  'float8 float4': 'keeps 6 significant digits',
  'numeric float4': 'keeps 6 significant digits',
  'numeric float8': 'keeps 15 significant digits',
  'int8 float8': 'is exact up to 2^53 only',
  'int8 float4': 'is exact up to 2^24 only',
  'int4 float4': 'is exact up to 2^24 only',
  'numeric money': 'rounds to the currency’s smallest unit',
  'timestamp date': TIME_OF_DAY,
  'timestamptz date': `${TIME_OF_DAY}, by the pipeline’s zone`,
  'timestamp time': 'drops the date',
  'timestamptz time': 'drops the date and the time zone',
  'timestamptz timetz': 'drops the date',
  'timestamptz timestamp': 'drops the time zone: what is left is the wall clock of the pipeline’s zone',
  'timetz time': 'drops the time zone',
  'interval time': 'drops whole days',
  'json jsonb': 'drops the order of keys and all but the last of equal ones',
  'inet cidr': 'zeroes the bits behind the netmask',
  'text char': 'keeps the first byte',
  'varchar char': 'keeps the first byte',
  'text name': 'cuts at 63 bytes',
  'varchar name': 'cuts at 63 bytes',
};

function fewerPlaces(from: CastType, to: CastType): string | undefined {
  const [had, has] = [scaleOf(from), scaleOf(to)];
  return had !== undefined && has !== undefined && has < had ? `rounds to ${places(has)}` : undefined;
}

function places(scale: number): string {
  return scale === 0 ? 'whole numbers' : `${scale} decimal ${scale === 1 ? 'place' : 'places'}`;
}

function shorter(from: CastType, to: CastType): string | undefined {
  const [had, has] = [lengthOf(from), lengthOf(to)];
  return had !== undefined && has !== undefined && has < had
    ? `fails on more than ${has} characters, and cuts blanks at their end`
    : undefined;
}

function coarser(from: CastType, to: CastType): string | undefined {
  const [had, has] = [numbersIn(from)[0] ?? MICROSECONDS, numbersIn(to)[0] ?? MICROSECONDS];
  if (has >= had) return undefined;
  return has === 0 ? 'rounds to whole seconds' : `rounds to ${has} digits after the second`;
}

function scaleOf(type: CastType): number | undefined {
  const [precision, scale] = numbersIn(type);
  return precision === undefined ? undefined : (scale ?? 0);
}

function lengthOf(type: CastType): number | undefined {
  return numbersIn(type)[0];
}

function numbersIn({ text }: CastType): number[] {
  const [, list] = /\((-?\d+(?:,-?\d+)?)\)/.exec(text) ?? [];
  return list?.split(',').map(Number) ?? [];
}
