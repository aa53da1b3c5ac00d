/**
 * Hashes of API keys as ClickHouse keeps them. Whoever reads the tables may not be trusted with the hash of a key that
 * people chose, for it can be guessed from it; so it is encrypted with what only the service has, the password of its
 * own account.
 */
import { createCipheriv, createDecipheriv, createHmac, randomBytes, scrypt } from 'node:crypto';
import { promisify } from 'node:util';

export type KeySeal = Awaited<ReturnType<typeof createKeySeal>>;

const cipher = 'aes-256-gcm';
const ivBytes = 12;
const tagBytes = 16;
const derive = promisify<string, string, number, Buffer>(scrypt);

/** @param clickhouseUrl of the service's account, with its password */
export async function createKeySeal(clickhouseUrl: string) {
  const password = decodeURIComponent(new URL(clickhouseUrl).password);
  const secret = await derive(password, 'skilltrace api keys', 64);
  const [sealing, naming] = [secret.subarray(0, 32), secret.subarray(32)];
  return {
    /** Names a key without its hash; the same for the same key and secret. */
    name: (keyHash: string): string =>
      createHmac('sha256', naming).update(keyHash).digest('hex').slice(0, 32),
    /** @param bound what must be the same when it is opened */
    close: (keyHash: string, bound: string): string => {
      const iv = randomBytes(ivBytes);
      const sealed = createCipheriv(cipher, sealing, iv).setAAD(Buffer.from(bound));
      const body = Buffer.concat([sealed.update(keyHash, 'utf8'), sealed.final()]);
      return Buffer.concat([iv, sealed.getAuthTag(), body]).toString('base64');
    },
    /** Null for what was sealed with another secret, or bound to something else. */
    open: (sealed: string, bound: string) => openSealed(sealing, Buffer.from(sealed, 'base64'), bound),
  };
}

function openSealed(secret: Buffer, sealed: Buffer, bound: string): string | null {
  if (sealed.length < ivBytes + tagBytes) return null;
  const opened = createDecipheriv(cipher, secret, sealed.subarray(0, ivBytes))
    .setAAD(Buffer.from(bound))
    .setAuthTag(sealed.subarray(ivBytes, ivBytes + tagBytes));
  const text = opened.update(sealed.subarray(ivBytes + tagBytes));
  try {
    return Buffer.concat([text, opened.final()]).toString();
  } catch {
    // The one thing that final() checks is the tag.
    return null;
  }
}
