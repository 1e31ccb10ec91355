import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** The snippets of a page of the docs: its fenced blocks, each by the name behind its language, or by the language alone. */
export class Snippets {
  readonly #texts = new Map<string, string>();
  readonly #taken = new Set<string>();

  constructor(page = 'callers.md') {
    const path = fileURLToPath(new URL(`../../docs/${page}`, import.meta.url));
    for (const [, language = '', name, text = ''] of readFileSync(path, 'utf8').matchAll(
      /^```(\w+)(?: (\S+))?\n([^]*?)^```$/gm,
    )) {
      const label = name ?? language;
      if (this.#texts.has(label)) throw new Error(`two snippets are named ${label}`);
      this.#texts.set(label, text);
    }
  }

  take(name: string): string {
    const text = this.#texts.get(name);
    if (text === undefined) throw new Error(`no snippet is named ${name}`);
    this.#taken.add(name);
    return text;
  }

  /** The names of those that nobody took. */
  get left(): string[] {
    return [...this.#texts.keys()].filter((name) => !this.#taken.has(name));
  }
}

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Program {
  readonly ended: Promise<Ended>;
  /** Resolves once standard output has a match; rejects where it ends without. */
  says(pattern: RegExp): Promise<void>;
}

/** Runs a program with nothing of this process's environment but what is given. */
export function run(
  program: string,
  words: readonly string[],
  env: Readonly<Record<string, string>>,
  cwd?: string,
): Program {
  const child = spawn(program, words, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  const ended = new Promise<Ended>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code) => resolve({ code, stdout, stderr }));
  });
  const says = (pattern: RegExp): Promise<void> =>
    new Promise((resolve, reject) => {
      const look = (): void => {
        if (pattern.test(stdout)) resolve();
      };
      child.stdout.on('data', look);
      child.on('close', () => (look(), reject(new Error(`It ended without saying ${pattern}:\n${stdout}\n${stderr}`))));
      look();
    });
  return { ended, says };
}
