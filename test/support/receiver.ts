import { webcrypto } from 'node:crypto';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Notice } from '../../src/contract.js';

/** What a receiver does with a request: answers with a status, waits for ever, or hangs up, before or after it has read it. */
export type Answer = number | 'hangs' | 'hangs up';

/** One request that has come in whole. */
export interface Delivery {
  readonly method?: string;
  readonly path?: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly answer: Answer;
}

/** A receiver of notices, on a port of its own. */
export interface Receiver {
  readonly url: string;
  readonly deliveries: readonly Delivery[];
  /** Documents that it has taken: those that it answered with 200. */
  taken(): Notice[];
  /** What it does from here on. */
  answers(next: (document: Notice, earlier: number) => Answer): void;
  close(): Promise<void>;
}

/** Starts a receiver that takes all it is sent, until it is told otherwise: by the document, and how often it came before. */
export async function startReceiver(): Promise<Receiver> {
  const deliveries: Delivery[] = [];
  let next: (document: Notice, earlier: number) => Answer = () => 200;
  const server = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (text: string) => (body += text));
    request.on('end', () => {
      const document = JSON.parse(body) as Notice;
      const answer = next(document, deliveries.filter((one) => idOf(one) === document.id).length);
      deliveries.push({ method: request.method, path: request.url, headers: request.headers, body, answer });
      if (answer === 'hangs') return;
      if (answer === 'hangs up') request.socket.destroy();
      else if (answer >= 300 && answer < 400) response.writeHead(answer, { location: '/elsewhere' }).end();
      else response.writeHead(answer).end('x'.repeat(100_000));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    deliveries,
    taken: () => deliveries.filter(({ answer }) => answer === 200).map(({ body }) => JSON.parse(body) as Notice),
    answers: (then) => (next = then),
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function idOf({ body }: Delivery): string {
  return (JSON.parse(body) as Notice).id;
}

/**
 * Whether a signature is that of a text, and of the last five minutes: written from the docs alone, and with another library
 * than the product's.
 */
export async function isSigned(secret: string, text: string, header: unknown): Promise<boolean> {
  const [, t = '', hex = ''] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(String(header)) ?? [];
  if (Math.abs(Date.now() / 1000 - Number(t)) > 300) return false;
  const bytes = (plain: string): Uint8Array<ArrayBuffer> => new Uint8Array(new TextEncoder().encode(plain));
  const { subtle } = webcrypto;
  const key = await subtle.importKey('raw', bytes(secret), { name: 'HMAC', hash: 'SHA-256' }, false, ['verify']);
  const given = Uint8Array.from(hex.match(/../g) ?? [], (pair) => parseInt(pair, 16));
  return subtle.verify('HMAC', key, given, bytes(`${t}.${text}`));
}
