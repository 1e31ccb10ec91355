/** What a pipeline file imports from `repave`. */
export { definePipeline } from './pipeline/define-pipeline.js';
export type { CheckSetting, PipelineDefinition } from './pipeline/define-pipeline.js';
export type { ChangedFunction, ReadyFunction, Row, RowsContext, RowSource, RowValues } from './pipeline/pipeline.js';
export { SourceError } from './pipeline/source-error.js';
export type { Granularity } from './calendar/calendar.js';
