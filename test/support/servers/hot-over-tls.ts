/**
 * A program: sends bundles to the Redis of the URL in its first argument, larger than a TLS record, and ends with code 0
 * where all their replies are right. Whom it trusts beside the usual is told by NODE_EXTRA_CA_CERTS, at its start alone.
 */
import assert from 'node:assert/strict';
import { openHotConnection } from '../../../src/store/redis/connection/hot-connection.js';
import { createCommandEncoder } from '../../../src/store/redis/wire/command-encoder.js';

const hot = openHotConnection(process.argv[2] as string, 0);
await hot.waitUntilReady();
for (let i = 0; i < 20; i++) {
  const value = `${i}`.repeat(100_000);
  const request = createCommandEncoder(64);
  for (const words of [
    ['SET', 'large', value],
    ['GET', 'large'],
    ['NOSUCHCOMMAND', 'large'],
  ]) {
    request.command(words.length, words[0] as string);
    for (const word of words.slice(1)) request.text(word);
  }
  const [, stored, unknown] = await hot.send(request);
  assert.equal(String(stored), value);
  assert.ok(unknown instanceof Error);
}
assert.equal(hot.currentSocket().constructor.name, 'TLSSocket');
hot.close();
