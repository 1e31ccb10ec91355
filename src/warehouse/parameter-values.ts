import type { Window } from '../calendar/calendar.js';
import type { ParameterName } from '../pipeline/pipeline.js';

/** The values of a query's parameters for one window, in its order. */
export function parameterValues(parameters: readonly ParameterName[], window: Window): string[] {
  return parameters.map((name) => {
    switch (name) {
      case 'start':
        return window.start;
      case 'end':
        return window.end;
      case 'date':
        return window.date;
      case 'end_date':
        return window.endDate;
      case 'key':
        return window.key;
      default:
        return name satisfies never;
    }
  });
}
