import {
  type Client,
  WorkflowExecutionAlreadyStartedError,
  type WorkflowExecutionDescription,
  WorkflowNotFoundError,
} from '@temporalio/client';
import { Failure } from '../failure.js';
import { firstRunIn } from './describe-run.js';
import { firstArgument } from './first-argument.js';
import { differences, type InputMemo } from './input-memo.js';
import type { RunName } from './run-handle.js';

export interface StartRequest {
  readonly type: string;
  readonly id: string;
  readonly taskQueue: string;
  readonly input: object;
  readonly memo: InputMemo;
  /** The memo that a run of this type with another input would have; undefined where that is no such input. */
  readonly memoOf: (input: unknown) => InputMemo | undefined;
  readonly summary: string;
  readonly priority?: number;
}

/** Where Temporal keeps the input for those who start the same id later. */
const MEMO_FIELD = 'repaveInput';

/** The memo that a run is started with. */
export function memoFor(input: InputMemo): Record<string, unknown> {
  return { [MEMO_FIELD]: input };
}

/** A run that ended between the refusal and the look is started anew; twice in a row is no accident. */
const TRIES = 5;

/** The run that is there already, with the fields in which its input differs; undefined fields where they are not known. */
export interface RunningRun {
  readonly run: RunName;
  readonly differs: readonly string[] | undefined;
}

/** Starts a workflow under its id, or joins the run that has it where that was started with equal input. */
export async function startOrJoin(client: Client, request: StartRequest): Promise<RunName> {
  const found = await startOrFind(client, request);
  if (!('differs' in found)) return found;
  if (found.differs?.length === 0) return found.run;
  const what = found.differs ? `another ${found.differs.join(', ')}` : 'an input that is not known here';
  throw new Failure(
    'InvalidInput',
    `${request.id} is running already, with ${what}. Wait for it or cancel it, or start this one under another id.`,
  );
}

/** Starts a workflow, or says what runs under its id. */
export async function startOrFind(client: Client, request: StartRequest): Promise<RunName | RunningRun> {
  for (let tries = 1; ; tries++) {
    try {
      return await start(client, request);
    } catch (error) {
      if (!(error instanceof WorkflowExecutionAlreadyStartedError) || tries === TRIES) throw error;
    }
    const running = await describeRunning(client, request.id);
    if (!running) continue;
    // One that was started by other means has no memo.
    const kept =
      (running.memo?.[MEMO_FIELD] as InputMemo | undefined) ?? request.memoOf(await firstArgument(client, running));
    return { run: nameOf(running), differs: kept && differences(kept, request.memo) };
  }
}

async function start(client: Client, request: StartRequest): Promise<RunName> {
  const { type, id, taskQueue, input, memo, summary, priority } = request;
  const handle = await client.workflow.start(type, {
    workflowId: id,
    taskQueue,
    args: [input],
    memo: memoFor(memo),
    staticSummary: summary,
    priority: priority === undefined ? undefined : { priorityKey: priority },
    workflowIdReusePolicy: 'ALLOW_DUPLICATE',
    workflowIdConflictPolicy: 'FAIL',
  });
  const runId = handle.firstExecutionRunId;
  return { id, runId, firstRunId: runId, joined: false };
}

async function describeRunning(client: Client, id: string): Promise<WorkflowExecutionDescription | undefined> {
  try {
    const description = await client.workflow.getHandle(id).describe();
    return description.status.name === 'RUNNING' ? description : undefined;
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return undefined;
    throw error;
  }
}

function nameOf(description: WorkflowExecutionDescription): RunName {
  const { workflowId: id, runId } = description;
  return { id, runId, firstRunId: firstRunIn(description), joined: true };
}
