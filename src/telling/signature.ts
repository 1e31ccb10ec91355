import { createHmac } from 'node:crypto';

/**
 * What proves to a receiver who shares the secret that a document is ours, and of what time: `t=<unix seconds>,v1=<hex>`, where
 * the hex digits are the HMAC-SHA256 of `<t>.<document>`. A later delivery has a time, and so a signature, of its own.
 */
export function signature(secret: string, document: string, at = new Date()): string {
  const t = Math.floor(at.getTime() / 1000);
  return `t=${t},v1=${createHmac('sha256', secret).update(`${t}.${document}`).digest('hex')}`;
}
