import assert from 'node:assert/strict';
import { ApplicationFailure } from '@temporalio/common';
import pg from 'pg';
import { Failure } from '../../src/failure.js';
import { createLog, temporalLogger } from '../../src/telemetry/log.js';
import { plainLine } from '../../src/telemetry/plain-line.js';

const MARKER = 'row-value-4711';

function written(write: (log: ReturnType<typeof createLog>) => void, level = 'info'): Record<string, unknown>[] {
  const lines: string[] = [];
  write(createLog(level, { write: (line: string) => void lines.push(line) }));
  assert.ok(
    lines.every((line) => !line.includes(MARKER)),
    lines.join(),
  );
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
}

describe('the log', () => {
  it('is one JSON object a line, with time, level and message', () => {
    const [line] = written((log) => log.info({ pipeline: 'sales' }, 'Worker is ready'));
    assert.deepEqual(Object.keys(line ?? {}).sort(), ['level', 'msg', 'pipeline', 'time']);
    assert.equal(line?.level, 'info');
    assert.ok(!Number.isNaN(Date.parse(String(line?.time))));
  });

  it('keeps of an error of the database its SQLSTATE, and nothing it may quote', () => {
    const error = Object.assign(new pg.DatabaseError(MARKER, 1, 'error'), {
      severity: 'ERROR',
      code: '23505',
      detail: MARKER,
      where: MARKER,
      internalQuery: MARKER,
      hint: MARKER,
    });
    const [line] = written((log) => log.error({ error }, 'failed'));
    const { type, code, message } = line?.error as Record<string, unknown>;
    assert.deepEqual([type, code, message], ['DatabaseError', '23505', undefined]);
  });

  it('keeps of other errors no URL and no field of theirs', () => {
    const error = Object.assign(new TypeError(`cannot reach postgres://me:${MARKER}@db/shop now`), {
      input: MARKER,
      connectionString: MARKER,
      code: 'ERR_INVALID_URL',
    });
    const [line] = written((log) => log.error({ error }, 'failed'));
    const { type, code, message, at } = line?.error as Record<string, unknown>;
    assert.deepEqual([type, code, message], ['TypeError', 'ERR_INVALID_URL', 'cannot reach (a URL) now']);
    assert.ok(Array.isArray(at) && at.length > 0);
  });

  it('tells failures of ours and Temporal’s in full', () => {
    const lines = written((log) => {
      log.warn({ error: new Failure('CheckFailed', 'rows: 0 of at least 1', { sqlstate: '22000' }) }, 'failed');
      log.warn({ error: ApplicationFailure.nonRetryable('rows: 0', 'CheckFailed') }, 'failed');
    });
    assert.deepEqual(lines[0]?.error, { type: 'CheckFailed', message: 'rows: 0 of at least 1', code: '22000' });
    assert.deepEqual(lines[1]?.error, { type: 'CheckFailed', message: 'rows: 0' });
  });

  it('takes the SDK’s lines, without a task’s token, and its coming and going for debug', () => {
    const lines = written((log) => {
      const temporal = temporalLogger(log);
      temporal.info('Worker state changed', { sdkComponent: 'worker', state: 'RUNNING' });
      temporal.warn('Activity failed', { sdkComponent: 'worker', taskToken: MARKER, timestamp: 5n });
      temporal.info('from a workflow', { sdkComponent: 'workflow' });
    });
    assert.deepEqual(
      lines.map(({ level, msg }) => [level, msg]),
      [
        ['warn', 'Activity failed'],
        ['info', 'from a workflow'],
      ],
    );
  });

  it('is readable on a terminal', () => {
    const line = plainLine(
      '{"level":"warn","time":"2024-02-29T12:30:45.123Z","pipeline":"sales","rows":3,"msg":"Trying again"}',
    );
    assert.equal(line, '12:30:45  warn: Trying again  pipeline=sales  rows=3\n');
  });
});
