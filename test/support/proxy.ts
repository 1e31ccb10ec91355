import { connect, createServer, type Server, type Socket } from 'node:net';

/** One message that a client sends to the server. */
export interface Message {
  readonly connection: ProxiedConnection;
  /** Which of all messages of all connections since `restart`, from 1. */
  readonly number: number;
  /** The protocol's letter, such as `Q`, `P`, `S`; `startup` for the first of a connection, which has none. */
  readonly type: string;
  /** The SQL of `Q` and `P`, else ''. */
  readonly sql: string;
}

/**
 * What becomes of a message and of its connection:
 * - `pass`: it goes on.
 * - `cut`: it does not; both ends are closed.
 * - `pass and cut`: it goes on, and the server reads it; the client's end is closed at once.
 * - `lose the answer`: it goes on, the server answers in full, the client never hears of it: its end is then closed.
 * - `freeze`: from here on nothing passes in either direction, and nothing is closed, as where packets are dropped.
 * - `pass and freeze`: the same, after the server has got this message.
 * - `{ holdUntil }`: the client's end is closed now; the message goes to the server once that settles.
 */
export type Fate =
  | 'pass'
  | 'cut'
  | 'pass and cut'
  | 'lose the answer'
  | 'freeze'
  | 'pass and freeze'
  | { readonly holdUntil: Promise<unknown> };

export interface ProxyRules {
  /** Decides on each message. Absent: all pass. */
  onMessage?: (message: Message) => Fate;
  /** Told of each ReadyForQuery before the client gets it, which is once the promise settles. */
  onReady?: (connection: ProxiedConnection) => Promise<void> | undefined;
}

/** A TCP proxy that knows PostgreSQL's protocol (without TLS), for a test to stand between a fill and the server. */
export class Proxy {
  readonly #server: Server;
  readonly #serverPort: number;
  readonly #open = new Set<ProxiedConnection>();
  rules: ProxyRules = {};
  /** Messages of clients since `restart`. */
  messages = 0;
  /** ReadyForQuery since `restart`: round trips. */
  readies = 0;

  private constructor(serverPort: number) {
    this.#serverPort = serverPort;
    this.#server = createServer((client) => {
      const connection = new ProxiedConnection(this, client, connect({ port: this.#serverPort, host: '127.0.0.1' }));
      this.#open.add(connection);
      connection.closed.finally(() => this.#open.delete(connection)).catch(() => undefined);
    });
  }

  /** Stands before the server that a URL names. */
  static async before(url: string): Promise<Proxy> {
    const proxy = new Proxy(Number(new URL(url).port));
    await new Promise<void>((resolve) => proxy.#server.listen(0, '127.0.0.1', resolve));
    return proxy;
  }

  /** The same URL, through this proxy. */
  url(url: string): string {
    const through = new URL(url);
    const address = this.#server.address();
    if (address === null || typeof address === 'string') throw new Error('the proxy is closed');
    through.port = String(address.port);
    return through.href;
  }

  /** Sets rules, and counts messages anew. */
  restart(rules: ProxyRules): void {
    this.rules = rules;
    this.messages = 0;
    this.readies = 0;
  }

  get connections(): readonly ProxiedConnection[] {
    return [...this.#open];
  }

  /** Resolves once every connection whose client's end is closed has gone at the server's end too. Not for frozen ones. */
  async gone(): Promise<void> {
    await Promise.all(this.connections.filter(({ client }) => client.destroyed).map(({ closed }) => closed));
  }

  /** From here on nothing passes on any open connection, and none is closed. */
  freezeAll(): void {
    for (const connection of this.#open) connection.freeze();
  }

  async close(): Promise<void> {
    for (const connection of this.#open) connection.cut();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

/** One connection through the proxy. */
export class ProxiedConnection {
  readonly closed: Promise<void>;
  /** The backend's pid, as the server told the client. */
  pid: number | undefined;
  #state: 'open' | 'frozen' | 'answer lost' | 'held' = 'open';
  #fromClient: Buffer = Buffer.alloc(0);
  #fromServer: Buffer = Buffer.alloc(0);
  #started = false;
  #delivering: Promise<void> = Promise.resolve();

  constructor(
    readonly proxy: Proxy,
    readonly client: Socket,
    readonly server: Socket,
  ) {
    client.setNoDelay(true);
    server.setNoDelay(true);
    client.on('error', () => undefined);
    server.on('error', () => undefined);
    client.on('data', (bytes) => this.#readClient(bytes));
    server.on('data', (bytes) => this.#readServer(bytes));
    client.on('close', () => {
      if (this.#state === 'open' || this.#state === 'answer lost') server.end();
    });
    server.on('close', () => {
      if (this.#state === 'frozen') return;
      // What the server said last comes first.
      void this.#delivering.then(() => client.end());
    });
    this.closed = Promise.all(
      [client, server].map((socket) => new Promise((resolve) => socket.once('close', resolve))),
    ).then(() => undefined);
  }

  cut(): void {
    this.client.destroy();
    this.server.destroy();
  }

  freeze(): void {
    this.#state = 'frozen';
  }

  #readClient(bytes: Buffer): void {
    if (this.#state !== 'open' && this.#state !== 'answer lost') return;
    this.#fromClient = Buffer.concat([this.#fromClient, bytes]);
    for (;;) {
      const header = this.#started ? 1 : 0;
      if (this.#fromClient.length < header + 4) return;
      const length = header + this.#fromClient.readInt32BE(header);
      if (this.#fromClient.length < length) return;
      const message = this.#fromClient.subarray(0, length);
      this.#fromClient = this.#fromClient.subarray(length);
      if (!this.#passClient(message)) return;
    }
  }

  /** Returns whether the messages behind it may be looked at. */
  #passClient(bytes: Buffer): boolean {
    const type = this.#started ? String.fromCharCode(bytes[0] ?? 0) : 'startup';
    this.#started = true;
    this.proxy.messages += 1;
    const fate = this.proxy.rules.onMessage?.({
      connection: this,
      number: this.proxy.messages,
      type,
      sql: sqlOf(type, bytes),
    });
    switch (fate) {
      case undefined:
      case 'pass':
        this.server.write(bytes);
        return true;
      case 'cut':
        this.cut();
        return false;
      case 'pass and cut':
        this.#state = 'held';
        this.server.end(bytes);
        this.client.destroy();
        return false;
      case 'lose the answer':
        this.#state = 'answer lost';
        this.server.write(bytes);
        return true;
      case 'freeze':
        this.freeze();
        return false;
      case 'pass and freeze':
        this.server.write(bytes);
        this.freeze();
        return false;
      default:
        this.#state = 'held';
        this.client.destroy();
        fate.holdUntil.then(
          () => this.server.end(bytes),
          () => this.server.destroy(),
        );
        return false;
    }
  }

  #readServer(bytes: Buffer): void {
    if (this.#state === 'frozen' || this.#state === 'held') return;
    this.#fromServer = Buffer.concat([this.#fromServer, bytes]);
    for (;;) {
      if (this.#fromServer.length < 5) return;
      const length = 1 + this.#fromServer.readInt32BE(1);
      if (this.#fromServer.length < length) return;
      const message = this.#fromServer.subarray(0, length);
      this.#fromServer = this.#fromServer.subarray(length);
      this.#passServer(message);
    }
  }

  #passServer(bytes: Buffer): void {
    const type = String.fromCharCode(bytes[0] ?? 0);
    if (type === 'K') this.pid = bytes.readInt32BE(5);
    if (type === 'Z') this.proxy.readies += 1;
    if (this.#state === 'answer lost') {
      // A COPY is answered by CopyInResponse, and only then goes on.
      if (type === 'Z' || type === 'G') this.cut();
      return;
    }
    const before = type === 'Z' ? this.proxy.rules.onReady?.(this) : undefined;
    this.#delivering = this.#delivering.then(async () => {
      await before;
      if (this.#state === 'open') this.client.write(bytes);
    });
  }
}

function sqlOf(type: string, bytes: Buffer): string {
  if (type === 'Q') return bytes.toString('utf8', 5, bytes.length - 1);
  if (type !== 'P') return '';
  const text = bytes.indexOf(0, 5) + 1;
  return bytes.toString('utf8', text, bytes.indexOf(0, text));
}
