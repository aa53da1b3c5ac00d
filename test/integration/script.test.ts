import assert from 'node:assert/strict';
import { test } from 'node:test';
import { defineScript } from '../../src/store/redis/commands/script.js';
import { startTestRedis } from '../support/servers/embedded.js';
import { redisOf } from '../support/servers/service.js';

test('defineScript loads a script again after SCRIPT FLUSH, and returns texts or bytes', async (t) => {
  const client = await redisOf(t, await startTestRedis(t));
  const echo = defineScript(1)<[key: string, text: string], string>("return ARGV[1] .. ' ' .. KEYS[1]");
  const bytes = defineScript(null, 'bytes')<[keys: number, text: Buffer], Buffer>('return ARGV[1]');
  assert.equal(await echo(client, 'key', 'text'), 'text key');
  await client.script('FLUSH');
  assert.equal(await echo(client, 'key', 'text'), 'text key');
  assert.deepEqual(await bytes(client, 0, Buffer.from([0xff, 0])), Buffer.from([0xff, 0]));
});
