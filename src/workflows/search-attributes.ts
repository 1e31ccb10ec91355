import { defineSearchAttributeKey, type SearchAttributePair } from '@temporalio/common';
import { upsertSearchAttributes, workflowInfo } from '@temporalio/workflow';
import type { BackfillPlan } from '../activities/messages.js';
import { SEARCH_ATTRIBUTES } from '../contract.js';

/** Characters of a search attribute of the type Keyword. */
const MAX_KEYWORD = 255;

const PIPELINE = defineSearchAttributeKey(SEARCH_ATTRIBUTES.pipeline, 'KEYWORD');
const KEY = defineSearchAttributeKey(SEARCH_ATTRIBUTES.key, 'KEYWORD');
const BACKFILL = defineSearchAttributeKey(SEARCH_ATTRIBUTES.backfill, 'KEYWORD');

/** Marks the backfill itself, where its plan says that the namespace has the search attributes. */
export function markBackfill(plan: BackfillPlan): void {
  if (plan.searchAttributes) upsertSearchAttributes(ofBackfill(plan));
}

/** What a child is to be found by: its options' part, empty where the namespace has no such search attributes. */
export function childMarks(plan: BackfillPlan, name: string): { typedSearchAttributes?: SearchAttributePair[] } {
  if (!plan.searchAttributes) return {};
  return { typedSearchAttributes: [...ofBackfill(plan), { key: KEY, value: keyword(name) }] };
}

function ofBackfill({ pipeline }: BackfillPlan): SearchAttributePair[] {
  return [
    { key: PIPELINE, value: keyword(pipeline) },
    { key: BACKFILL, value: keyword(workflowInfo().workflowId) },
  ];
}

/** The beginning of a text that is longer than Temporal's databases keep: an id that a caller has chosen may be. */
function keyword(text: string): string {
  return text.length <= MAX_KEYWORD ? text : Array.from(text).slice(0, MAX_KEYWORD).join('');
}
