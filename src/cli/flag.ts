/** The flag of a field of the contract: `--max-failures` of `maxFailures`. */
export function flagOf(field: string): string {
  return `--${field.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}
