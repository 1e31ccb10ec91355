/** The form of a pipeline's name: its path under `pipelines/` without extension. */
export const PIPELINE_NAME = /^[a-z0-9_]+(\/[a-z0-9_]+)*$/;

/** Characters that a pipeline's name may have: as many as a request takes. */
export const MAX_PIPELINE_NAME = 200;
