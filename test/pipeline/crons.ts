/** Cron expressions, by what is to become of them. Another test asks a real Temporal server about the same ones. */
export const CRONS = {
  taken: [
    '15 2 * * *',
    '00 02 * * *',
    '*/15 * * * *',
    '5/10 * * * *',
    '0 0-6/2,12,18-20 * * *',
    '*,5 * * * *',
    '0 0 1 jan,JUL *',
    '0 0 1 January *',
    '0 0 * * MON-FRI',
    '0 0 * * monday',
    '0 0 * * 7',
    '0 0 * * 5-7',
    '0 0 29 2 *',
    '0 0 31 2,3 *',
    '0  0 * * *',
  ],
  refused: [
    ['61 2 * * *', /minute has "61", expected 0 to 59/],
    ['0 24 * * *', /hour has "24", expected 0 to 23/],
    ['0 0 0 * *', /day of the month has "0", expected 1 to 31/],
    ['0 0 * 13 *', /month has "13", expected 1 to 12 or names such as jan and feb/],
    ['0 0 * * 8', /day of the week has "8", expected 0 to 7 or names such as sun and mon/],
    ['0 0 * * fri-sun', /day of the week has "fri-sun"/],
    ['0 0 * * noday', /day of the week has "noday"/],
    ['10-5 * * * *', /minute has "10-5", expected a range from the smaller to the greater$/],
    ['*-5 * * * *', /minute has "\*-5"/],
    ['1-2-3 * * * *', /minute has "1-2-3"/],
    ['*/0 * * * *', /minute has "\*\/0", expected a step of 1 to 9999 behind its \/$/],
    ['*/x * * * *', /minute has "\*\/x"/],
    ['*/2/3 * * * *', /minute has "\*\/2\/3"/],
    ['-5 * * * *', /minute has "-5"/],
    ['1, 2 * * *', /minute has ""/],
    ['1,,2 * * * *', /minute has ""/],
    ['0 0 L * *', /day of the month has "L"/],
    ['0 0 ? * *', /day of the month has "\?"/],
    ['2 * *', /has 3 fields/],
    ['', /has 1 field$/],
  ],
  /** No cron to most readers, or one that never comes. */
  takenByTemporalAlone: [
    ['0 0 * * * 2030', /has 6 fields/],
    ['0 0 0 * * * *', /has 7 fields/],
    ['@daily', /has 1 field/],
    ['0 0 * * mo', /day of the week has "mo"/],
    ['0 0 * * * # nightly', /has 7 fields/],
    ['0 0 30 2 *', /no month that it names has a day 30/],
    ['0 0 31 4,6 *', /no month that it names has a day 31/],
  ],
} as const satisfies {
  readonly taken: readonly string[];
  readonly refused: readonly (readonly [string, RegExp])[];
  readonly takenByTemporalAlone: readonly (readonly [string, RegExp])[];
};
