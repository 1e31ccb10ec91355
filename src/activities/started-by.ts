import { Context } from '@temporalio/activity';

/** Milliseconds that Temporal may take to say it. */
const WITHIN_MS = 5_000;
/** Characters of it that are kept. */
const MAX_LENGTH = 200;

/**
 * Who started the workflow that this activity belongs to, as Temporal has it: the identity of the client. Of a run that
 * continues, repeats or retries another it is that of the first. Undefined where Temporal has none, or cannot be asked now:
 * nothing is planned or not for its sake.
 */
export async function startedBy(): Promise<string | undefined> {
  const run = Context.current().info.workflowExecution?.runId;
  if (run === undefined) return undefined;
  try {
    const start = await readStart(run);
    const first = start?.firstExecutionRunId;
    const origin = first && first !== run ? await readStart(first) : start;
    return origin?.identity ? shown(origin.identity) : undefined;
  } catch {
    return undefined;
  }
}

/** On one line that can do nothing to a terminal: clients choose what they are called, and PostgreSQL takes no U+0000 in a text. */
function shown(identity: string): string | undefined {
  // eslint-disable-next-line no-control-regex
  const text = identity.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]+/g, ' ').trim();
  return text.slice(0, MAX_LENGTH) || undefined;
}

async function readStart(runId: string) {
  const { client, info } = Context.current();
  const { history } = await client.withDeadline(Date.now() + WITHIN_MS, () =>
    client.workflowService.getWorkflowExecutionHistory({
      namespace: info.namespace,
      execution: { workflowId: info.workflowExecution?.workflowId, runId },
      maximumPageSize: 1,
    }),
  );
  return history?.events?.[0]?.workflowExecutionStartedEventAttributes;
}
