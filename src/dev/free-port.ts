import { connect, createServer } from 'node:net';

/**
 * A port of this machine on which nobody listens: the preferred one if it is free, else one the system picks.
 * Free now does not mean free later: whoever binds it must be ready to ask again.
 */
export async function freePort(preferred?: number): Promise<number> {
  if (preferred !== undefined && (await isFree(preferred))) return preferred;
  return bind(0);
}

/** Whether nobody listens on the port, on any loopback address: a bind of 127.0.0.1 alone overlooks a server on ::1. */
export async function isFree(port: number): Promise<boolean> {
  if ((await answers('127.0.0.1', port)) || (await answers('::1', port))) return false;
  try {
    await bind(port);
    return true;
  } catch {
    return false;
  }
}

function bind(port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen({ port, host: '127.0.0.1' }, () => {
      const address = server.address();
      server.close(() =>
        address && typeof address === 'object' ? resolve(address.port) : reject(new Error('no port')),
      );
    });
  });
}

function answers(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, timeout: 1000 });
    const done = (answer: boolean): void => {
      socket.destroy();
      resolve(answer);
    };
    socket.once('connect', () => done(true));
    socket.once('error', () => done(false));
    socket.once('timeout', () => done(false));
  });
}
