import type { PlanEntry } from '../plan/resolve-plan.js';
import { instant, number } from './format.js';
import { JSON_VERSION, type Output } from './output.js';
import { table } from './table.js';

/** Writes the partitions of a plan as they come, holding no more than it shows at once. */
export interface Listing {
  take(page: readonly PlanEntry[]): Promise<void>;
  /** Once all have been taken; `document` is what a program is told besides. */
  end(document: object): Promise<void>;
}

const COLUMNS = [
  { heading: 'partition' },
  { heading: 'reason' },
  { heading: 'rows now', align: 'right' },
  { heading: 'filled' },
] as const;

/** Partitions on one screen. */
export const SCREEN_SIZE = 100;

/** For people: one screen of them as a table, the first being 1. */
export function screenListing(output: Output, screen: number): Listing {
  const [from, to] = [(screen - 1) * SCREEN_SIZE, screen * SCREEN_SIZE];
  const shown: PlanEntry[] = [];
  let seen = 0;
  return {
    async take(page) {
      shown.push(...page.slice(Math.max(0, from - seen), Math.max(0, to - seen)));
      seen += page.length;
    },
    async end() {
      if (shown.length > 0) output.result(table(output, COLUMNS, shown.map(cells)));
      const behind = seen - to;
      if (shown.length === 0 && seen > 0) {
        output.say(`There is no page ${screen}: the last one is ${Math.ceil(seen / SCREEN_SIZE)}.`);
      } else if (behind > 0) {
        output.say(`${number(behind)} more behind these: --page ${screen + 1}, or --all.`);
      }
    },
  };
}

/** All of them, tab-separated under a heading. */
export function linesListing(output: Output): Listing {
  return pouring(output, `${COLUMNS.map(({ heading }) => heading).join('\t')}\n`, (entry) => cells(entry).join('\t'));
}

/** All of them as CSV: no value in it needs quotes. */
export function csvListing(output: Output): Listing {
  return pouring(output, 'key,reason,rows,filled_at\n', ({ key, reason, rows, filledAt }) =>
    [key, reason, rows ?? '', filledAt?.toISOString() ?? ''].join(','),
  );
}

function pouring(output: Output, heading: string, line: (entry: PlanEntry) => string): Listing {
  let headed = false;
  const head = (): string => {
    const text = headed ? '' : heading;
    headed = true;
    return text;
  };
  return {
    take: (page) => output.pour(head() + page.map((entry) => `${line(entry)}\n`).join('')),
    end: () => output.pour(head()),
  };
}

/** One JSON document: its partitions as they come, then what is said of them all. */
export function jsonListing(output: Output, pipeline: string): Listing {
  let before = `${JSON.stringify({ version: JSON_VERSION, pipeline }).slice(0, -1)},"partitions":[`;
  return {
    async take(page) {
      const text = page
        .map(({ key, reason, rows, filledAt }) => JSON.stringify({ key, reason, rows, filledAt }))
        .join(',');
      await output.pour(before + text);
      before = ',';
    },
    async end(document) {
      await output.pour(`${before === ',' ? '' : before}],${JSON.stringify(document).slice(1)}\n`);
    },
  };
}

function cells({ key, reason, rows, filledAt }: PlanEntry): string[] {
  return [key, reason, rows === undefined ? '' : number(rows), filledAt ? instant(filledAt) : ''];
}
