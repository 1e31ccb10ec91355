import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Order {
  readonly id: number;
  readonly placed_at: string;
  readonly customer: string | null;
  readonly amount: string;
  readonly lines: readonly unknown[];
}

/** What the server does with one request instead of answering it. */
export type Trouble = 429 | 503 | 'dated 503' | 'breaks off' | 'hangs up' | 404;

const PAGE = 7;
const RETRY_AFTER_S = 1;

/** An API of orders in pages, on a port of its own, that is in trouble when it is told to be. */
export interface ShopServer {
  readonly url: string;
  readonly troubles: Map<Trouble, number>;
  /** Requests that came sooner than `Retry-After` had said. */
  readonly tooSoon: number;
  close(): Promise<void>;
}

/** `trouble` is asked with the number of each request, from 1; undefined: it is answered. */
export async function startShop(
  orders: readonly Order[],
  trouble: (request: number) => Trouble | undefined,
): Promise<ShopServer> {
  let requests = 0;
  let tooSoon = 0;
  const notBefore = new Map<string, number>();
  const troubles = new Map<Trouble, number>();

  const server = createServer((request, response) => {
    const from = request.url ?? '';
    // A timer may come a little early.
    if (Date.now() < (notBefore.get(from) ?? 0) - 50) tooSoon += 1;
    notBefore.delete(from);
    const now = trouble(++requests);
    if (now === undefined) {
      response.setHeader('content-type', 'application/json').end(page(orders, request));
      return;
    }
    troubles.set(now, (troubles.get(now) ?? 0) + 1);
    if (now === 429 || now === 'dated 503') notBefore.set(from, Date.now() + RETRY_AFTER_S * 1000);
    refuse(now, page(orders, request), request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/api`,
    troubles,
    get tooSoon() {
      return tooSoon;
    },
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function page(orders: readonly Order[], { url = '' }: IncomingMessage): string {
  const { pathname, searchParams } = new URL(url, 'http://shop');
  if (pathname !== '/api/orders') return JSON.stringify({ error: 'not here' });
  const at = (name: string): number => Date.parse(searchParams.get(name) ?? '');
  const within = orders.filter(({ placed_at }) => {
    const placed = Date.parse(placed_at);
    return placed >= at('from') && placed < at('to');
  });
  const start = Number(searchParams.get('cursor') ?? 0);
  const end = start + PAGE;
  return JSON.stringify({ orders: within.slice(start, end), next: end < within.length ? String(end) : null });
}

function refuse(trouble: Trouble, text: string, request: IncomingMessage, response: ServerResponse): void {
  switch (trouble) {
    case 429:
      response.writeHead(429, { 'retry-after': String(RETRY_AFTER_S) }).end('slow down');
      return;
    case 503:
      response.writeHead(503).end('busy');
      return;
    case 'dated 503':
      // The header has whole seconds: rounded up, or it would say sooner than is meant.
      response
        .writeHead(503, { 'retry-after': new Date(Math.ceil(Date.now() / 1000 + RETRY_AFTER_S) * 1000).toUTCString() })
        .end('busy');
      return;
    case 404:
      response.writeHead(404).end('not here');
      return;
    case 'breaks off':
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) });
      response.write(text.slice(0, text.length / 2), () => request.socket.destroy());
      return;
    case 'hangs up':
      request.socket.destroy();
      return;
    default:
      trouble satisfies never;
  }
}
