import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseRedisAddress } from '../../src/contracts/settings/redis-settings.js';

test('the first node says how to log in to all', () => {
  assert.deepEqual(parseRedisAddress('rediss://us%40er:p%3Aw@a:7000, rediss://b:7001'), {
    nodes: ['rediss://us%40er:p%3Aw@a:7000', 'rediss://b:7001'],
    login: { username: 'us@er', password: 'p:w', tls: {} },
  });
  assert.deepEqual(parseRedisAddress('redis://:secret@a').login, { password: 'secret' });
  assert.deepEqual(parseRedisAddress('redis://a').login, {});
});
